//! `tidegate simulate`: from a scenario file to a table, to JSON and to a page, with the exit code for scripts.

use serde_json::Value;

use crate::ran::{File, Ran, run};

const ARTICLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/article-003.toml");

fn simulate(arguments: &[&str]) -> Ran {
    run(&[&["simulate"], arguments].concat())
}

/// Twice what two workers can do, for ten seconds.
const SHORT: &str = r#"story = "Short."
duration = "10s"
[[service]]
workers = 2
time = "100ms"
[[clients]]
name = "all"
rate = "40/s"
spacing = "even"
timeout = "1s"
"#;

fn expecting(what: &str) -> File {
    File::with(&format!("{SHORT}[[expect]]\npolicy = \"no control\"\n{what}\n"))
}

/// The goodput of each policy, as a row of the first table has it.
fn goodput(text: &str) -> Vec<(&str, &str)> {
    let rows = text.lines().skip_while(|line| !line.starts_with("policy ")).skip(1);
    rows.take_while(|line| !line.is_empty())
        .map(|line| {
            let (name, numbers) = line.split_once("  ").unwrap();
            (name, numbers.split_whitespace().nth(1).unwrap())
        })
        .collect()
}

/// The table of the article, and one line about what it took.
#[test]
fn the_articles_table() {
    let ran = simulate(&[ARTICLE]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let expected = [
        ("no control", "580"),
        ("queue of 100", "5,990"),
        ("queue of 20", "5,990"),
        ("best static limit", "5,990"),
    ];
    assert_eq!(goodput(&ran.out), expected, "{}", ran.out);
    assert!(ran.out.contains("12 of 12 expectations are met."), "{}", ran.out);
    let last = ran.out.lines().last().unwrap();
    assert!(last.contains(" events in ") && last.contains(" a second on "), "{last}");
}

/// 99: everything was played, and something was expected that did not come. It is named, with what was found.
#[test]
fn a_missed_expectation() {
    let file = expecting("goodput = [200, 300]\nrejected = 0");
    let ran = simulate(&[file.path()]);
    assert_eq!(ran.code, 99, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("1 of 2 expectations is not met:\n  no control: goodput is "), "{}", ran.out);
    assert!(ran.out.contains(", not from 200 to 300\n"), "{}", ran.out);
    assert_eq!(ran.err, "tidegate: an expectation is not met\n");

    // Nothing is expected of what was not asked for.
    let ran = simulate(&[file.path(), "--only", "best static limit"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert_eq!(goodput(&ran.out).len(), 1, "{}", ran.out);
}

/// What was expected of a policy that is not there to be played was not met, whatever it was.
#[test]
fn an_expectation_that_nobody_can_meet() {
    let elastic = SHORT.replace("workers = 2", "elastic = { slope = 0.1 }");
    let file =
        File::with(&format!("{elastic}[[expect]]\npolicy = \"best static limit\"\ngoodput = [0, 1e9]\n"));
    let ran = simulate(&[file.path()]);
    assert_eq!(ran.code, 99, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("not played: best static limit"), "{}", ran.out);
}

/// 78: the file is not a scenario, or cannot be read. The message names the line.
#[test]
fn bad_scenarios() {
    for (text, line, what) in [
        (SHORT.replace("rate = \"40/s\"", "rate = 40"), 8, "expected a string"),
        (SHORT.replace("workers = 2", "workers = 2\nworkerss = 3"), 5, "workerss"),
        (format!("{SHORT}[[policy]]\nname = \"mine\"\ntext = '''\n[[upstream]]\nnam = 1\n'''\n"), 15, "nam"),
    ] {
        let file = File::with(&text);
        let ran = simulate(&[file.path()]);
        assert_eq!((ran.code, ran.out.as_str()), (78, ""), "{what}: {}", ran.err);
        assert!(ran.err.contains(&format!("{}:{line}:", file.path())), "{what}: {}", ran.err);
        assert!(ran.err.starts_with("error") && ran.err.contains(what), "{what}: {}", ran.err);
    }
    for path in ["/nonexistent/scenario.toml", env!("CARGO_TARGET_TMPDIR")] {
        let ran = simulate(&[path]);
        assert_eq!((ran.code, ran.out.as_str()), (78, ""), "{path}");
        assert!(ran.err.starts_with(&format!("tidegate: cannot read {path}: ")), "{}", ran.err);
    }
}

/// The same numbers for a program, and the same on any number of threads.
#[test]
fn json() {
    let file = expecting("goodput = 7");
    let play = |threads| {
        let ran = simulate(&[file.path(), "--json", "--seed", "7", "--runs", "3", "--threads", threads]);
        assert_eq!(ran.code, 99, "{}", ran.err);
        serde_json::from_str::<Value>(&ran.out).unwrap()
    };
    let (one, four) = (play("1"), play("4"));
    assert_eq!((&one["seed"], &one["runs"]), (&7.into(), &3.into()));
    assert_eq!((&one["reports"], &one["events"]), (&four["reports"], &four["events"]));
    assert_eq!(one["reports"][0]["policy"], "no control");
    assert_eq!(one["reports"][0]["goodput_of_runs"].as_array().unwrap().len(), 3);
    assert!(one["events_per_second"].as_f64().unwrap() > 0.0 && one["seconds"].as_f64().unwrap() > 0.0);
    let missed = &one["missed"][0];
    assert_eq!(
        (&missed["metric"], &missed["least"], &missed["most"]),
        (&"goodput".into(), &7.0.into(), &7.0.into())
    );
    assert!(
        missed["found"].is_f64()
            && missed["message"].as_str().unwrap().starts_with("no control: goodput is ")
    );
}

/// Policies of one's own are played under the names of their files.
#[test]
fn policies_from_files() {
    let scenario = File::with(SHORT);
    let policy = File::with(
        "[[upstream]]\nname = \"mine\"\nendpoints = [\"http://127.0.0.1:8103\"]\n[upstream.concurrency]\nlimit = 2\n",
    );
    let stem = std::path::Path::new(policy.path()).file_stem().unwrap().to_str().unwrap();
    let ran = simulate(&[scenario.path(), "--policy", policy.path(), "--policy", policy.path()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains(stem), "{}", ran.out);
    assert_eq!(goodput(&ran.out).len(), 4, "{}", ran.out);

    let ran = simulate(&[scenario.path(), "--policy", policy.path(), "--only", "nobody"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("no policy named `nobody`") && ran.err.contains("`no control`"), "{}", ran.err);

    let wrong = File::with("[[upstream]]\nnam = 1\n");
    let ran = simulate(&[scenario.path(), "--policy", wrong.path()]);
    assert_eq!((ran.code, ran.out.as_str()), (78, ""));
    assert!(ran.err.contains(&format!("{}:2:", wrong.path())), "{}", ran.err);
}

/// Where there are several services, a policy that knows none of them is said to protect nothing.
#[test]
fn a_policy_for_something_else() {
    let two = SHORT
        .replace("[[service]]\n", "[[service]]\nname = \"front\"\n")
        .replace("[[clients]]", "[[service]]\nname = \"back\"\nworkers = 1\ntime = \"1ms\"\n[[clients]]");
    let scenario = File::with(&two);
    let policy = File::with("[[upstream]]\nname = \"orders\"\nendpoints = [\"http://127.0.0.1:8103\"]\n");
    let ran = simulate(&[scenario.path(), "--policy", policy.path()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("protects nothing here") && ran.err.contains("front, back"), "{}", ran.err);
}

/// A page is a file of its own, beside the table; where it cannot be written, that is a failure and no scenario's fault.
#[test]
fn a_page() {
    let page = File::of_kind("html", "");
    let ran = simulate(&[ARTICLE, "--html", page.path(), "--only", "queue of 20"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains(page.path()) && ran.out.contains("queue of 20"), "{}{}", ran.err, ran.out);
    let text = std::fs::read_to_string(page.path()).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.trim_end().ends_with("</html>"));
    assert!(text.contains("--only &#39;queue of 20&#39;") && text.len() < 400_000, "{}", text.len());

    let ran = simulate(&[ARTICLE, "--html", "/nonexistent/page.html"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("cannot write /nonexistent/page.html"), "{}", ran.err);
}

/// 2: what was typed is not a command.
#[test]
fn usage_errors() {
    for arguments in
        [&[][..], &[ARTICLE, "--runs", "0"], &[ARTICLE, "--threads", "0"], &[ARTICLE, "--seed", "-1"]]
    {
        let ran = simulate(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}: {}", ran.err);
    }
    let ran = simulate(&["--help"]);
    assert!(ran.code == 0 && ran.out.contains("Examples:\n  tidegate simulate "), "{}", ran.out);
}
