//! Logs of no known format, read with a mapping.

use expect_test::expect;
use tidegate_workload::access_log::{Choice, OpenError, Options};

use super::{check_with, fixture};

fn mapped(mapping: &str) -> Options {
    Options { format: Choice::Mapped(mapping.parse().unwrap()), ..Options::default() }
}

#[test]
fn csv_with_a_header() {
    let text = concat!(
        "id,ts,latency_ms,code,url,account\n",
        "1,2025-03-14T08:26:53.500Z,12.5,200,/a?b=1,blue\n",
        "\n",
        "# a remark\n",
        "2,2025-03-14T08:26:53.400Z,-,503,\"/say/\"\"hi, you\"\"\",\n",
        "3,1741940813600,7,200,https://shop.test/c,red\r\n",
        "4,2025-03-14T08:26:53.700Z,soon,200,/d,red\n",
        "5,2025-03-14T08:26:53.800Z\n",
        "6,2025-03-14T08:26:53.900Z,\"1,200,/f,red\n",
    );
    let mapping = "arrival=ts,duration=latency_ms,status=code,path=url,tenant=account";
    check_with(
        text,
        mapped(mapping),
        &expect![[r#"
        read as mapped CSV: 3 of the first 6 lines fit. The column of `arrival` says when a request came. A time that names no zone is taken to be in UTC.
        5 08:26:53.400 503 "/say/\"hi, you\""
        2 08:26:53.500 200 "/a" total=12.5 tenant=blue
        6 08:26:53.600 200 "/c" total=7 host=shop.test tenant=red
        unreadable: line 7, column 28: latency_ms is not a duration, near `…025-03-14T08:26:53.700Z,soon,200,/d,red`
        unreadable: line 8, column 27: there is no column latency_ms (2 are there), near `…2025-03-14T08:26:53.800Z`
        unreadable: line 9, column 28: a quoted field does not end on this line, near `…025-03-14T08:26:53.900Z,"1,200,/f,red`
    "#]],
    );
}

#[test]
fn tabs_and_columns_by_number() {
    let text = "1741940813.25\t0.5\tGET /a HTTP/1.1\n1741940813.5\t0.25\tGET /b HTTP/1.1\n";
    check_with(
        text,
        mapped("end=1,duration=2:s,request=3"),
        &expect![[r#"
        read as mapped CSV: 2 of the first 2 lines fit. The arrival is `end` less `duration`. A time that names no zone is taken to be in UTC.
        1 08:26:52.750 GET "/a" total=500
        2 08:26:53.250 GET "/b" total=250
    "#]],
    );
}

#[test]
fn json_lines_with_nested_keys() {
    let text = concat!(
        r#"{"t":1741940813250,"http":{"path":"/a","took":{"us":1500}},"tags":["blue","x"]}"#,
        "\n",
        r#"{"t":"2025-03-14 09:26:53","http":{"path":"/b","took":{"us":null}}}"#,
        "\n",
        r#"{"http":{"path":"/c"}}"#,
        "\n",
    );
    let mut options = mapped("arrival=t,path=http.path,duration=http.took.us:us,tenant=tags");
    options.zone = "+01:00".parse().unwrap();
    check_with(
        text,
        options,
        &expect![[r#"
        read as mapped JSON lines: 2 of the first 3 lines fit. The column of `arrival` says when a request came. A time that names no zone is taken to be in UTC+01. It has whole seconds only, so the requests of a second are spread evenly over it, and bursts within a second are lost.
        1 08:26:53.250 "/a" total=1.5 tenant=blue
        2 08:26:53.500 "/b"
        unreadable: line 3: there is no time
    "#]],
    );
}

#[test]
fn nginx_json_can_be_mapped_too() {
    let mapping = "end=ts,client=remote,request=request,status=status,duration=request_time:s,service=urt:s";
    let (entries, tally, _) = super::read(fixture("nginx-json.log"), mapped(mapping));
    assert_eq!((entries.len(), tally.unreadable), (28, 0));
    let twice = entries.iter().find(|entry| entry.attempts == 2).unwrap();
    assert_eq!(twice.service, Some(std::time::Duration::from_millis(7)));
}

#[test]
fn a_column_that_is_not_there_is_named() {
    let text = "127.0.0.1,b\n1,2\n";
    let error =
        tidegate_workload::access_log::AccessLog::open(text.as_bytes(), mapped("arrival=ts")).unwrap_err();
    assert!(matches!(error, OpenError::NoSuchColumn { .. }));
    assert_eq!(error.to_string(), "there is no column \"ts\"; the first line: <address>,b");
}
