//! What `docs/` says of policies is so: the reference page is what the table of keys says, and examples are policies. To
//! renew the page:
//! `UPDATE_EXPECT=1 cargo test -p tidegate-policy --test docs`.

use expect_test::expect_file;
use tidegate_policy::{Parsed, Policy};

#[test]
fn the_reference_page_is_up_to_date() {
    expect_file!["../../../docs/policy.md"].assert_eq(&tidegate_policy::reference());
}

#[test]
fn the_example_about_priorities_is_a_policy_without_warnings() {
    let page = include_str!("../../../docs/priorities.md");
    let (_, rest) = page.split_once("```toml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    match Policy::parse(example, "priorities.md") {
        Ok(Parsed { lints, .. }) => assert_eq!(lints, []),
        Err(errors) => panic!("{errors}"),
    }
}
