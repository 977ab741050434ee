//! The example is run as a reader would run it.

use std::process::Command;

#[test]
fn the_example_shows_what_it_says() {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "-p", "tidegate-client", "--example", "resilient_client"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    // The columns: answered, refused, not sent, asked of the upstream, budget.
    let row = |what: &str| -> Vec<u32> {
        let line = text.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_else(|| panic!("{text}"));
        line.split_whitespace().map(|number| number.parse().unwrap()).collect()
    };
    assert_eq!(row("all is well")[..4], [100, 0, 0, 100]);
    let outage = row("it refuses everything");
    assert_eq!((outage[0], outage[1] + outage[2], outage[4]), (0, 100, 0));
    assert!(outage[3] <= 111, "{text}");
    assert_eq!(row("it is back")[0], 100);
}
