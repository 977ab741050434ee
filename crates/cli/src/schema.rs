//! `tidegate schema`.

use std::io::Write as _;

use crate::args::SchemaArgs;
use crate::exit::Failure;

pub(crate) fn run(args: &SchemaArgs) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    if args.markdown {
        write!(out, "{}", tidegate_policy::reference())?;
    } else {
        writeln!(out, "{:#}", tidegate_policy::schema())?;
    }
    Ok(())
}
