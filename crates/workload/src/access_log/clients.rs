//! Names for clients that say nothing of who they are, for reports that are passed on.

use std::collections::HashMap;

/// So many clients get a name of their own.
const NAMED_MAX: usize = 65_536;

/// Names clients in the order in which they appear: `client-1`, `client-2` and so on.
///
/// A name means the same within one `Pseudonyms` and nothing outside of it: it is no hash that could be undone by
/// trying all addresses.
///
/// ```
/// use tidegate_workload::access_log::Pseudonyms;
///
/// let mut names = Pseudonyms::default();
/// assert_eq!(names.name("192.0.2.7"), "client-1");
/// assert_eq!(names.name("192.0.2.9"), "client-2");
/// assert_eq!(names.name("192.0.2.7"), "client-1");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pseudonyms {
    numbers: HashMap<Box<str>, usize>,
}

impl Pseudonyms {
    /// The name of a client. When 65,536 have names, all others share `client-other`.
    pub fn name(&mut self, client: &str) -> String {
        if let Some(number) = self.numbers.get(client) {
            return format!("client-{number}");
        }
        let number = self.numbers.len() + 1;
        if number > NAMED_MAX {
            return "client-other".to_owned();
        }
        self.numbers.insert(client.into(), number);
        format!("client-{number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_bound() {
        let mut names = Pseudonyms::default();
        for number in 1..=NAMED_MAX {
            names.name(&number.to_string());
        }
        assert_eq!(names.name("another"), "client-other");
        assert_eq!(names.name("2"), "client-2");
        assert_eq!(names.numbers.len(), NAMED_MAX);
    }
}
