//! The reference page in `docs/` is what the table of keys says. To renew it:
//! `UPDATE_EXPECT=1 cargo test -p tidegate-policy --test docs`.

use expect_test::expect_file;

#[test]
fn the_reference_page_is_up_to_date() {
    expect_file!["../../../docs/policy.md"].assert_eq(&tidegate_policy::reference());
}
