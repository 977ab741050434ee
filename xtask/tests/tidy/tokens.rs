//! Rules that need the tokens of a file: how long its functions are, and why a test is ignored.
//!
//! Tokens rather than a syntax tree, because a tree stops at a macro call: a function inside `proptest!` counts as
//! much as any other.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::allowed::Allowance;
use crate::source::{Finding, Source};

/// The most lines a function may have, from `fn` to its closing brace.
pub(crate) const FUNCTION_LINES_MAX: usize = 70;

/// One function, nested ones and methods included.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name, without the type it belongs to.
    pub(crate) name: String,
    /// Where its `fn` stands.
    pub(crate) line: usize,
    /// From `fn` to the closing brace, both included; a text counts as one line.
    pub(crate) lines: usize,
}

/// Everything wrong with the tokens of `source`.
pub(crate) fn check(source: &Source, allowed: &[Allowance]) -> Vec<Finding> {
    let Some(tokens) = parse(source) else {
        return vec![source.finding(1, "the file cannot be read as Rust", "see what the compiler says")];
    };
    let mut found = Vec::new();
    each_group(&tokens, &mut |tokens| {
        for function in functions_here(tokens) {
            let Function { name, line, lines } = &function;
            if *lines > FUNCTION_LINES_MAX
                && !allowed.iter().any(|entry| entry.covers(&source.path, &function))
            {
                let what = format!("function `{name}` has {lines} lines (at most {FUNCTION_LINES_MAX})");
                found.push(source.finding(*line, what, "name its parts and make them functions"));
            }
        }
        for line in silent_ignores(tokens) {
            found.push(source.finding(line, "`#[ignore]` without a reason", "write #[ignore = \"why\"]"));
        }
    });
    found
}

/// All functions of `source`; none when it cannot be read, which [`check`] reports.
pub(crate) fn functions(source: &Source) -> Vec<Function> {
    let mut all = Vec::new();
    if let Some(tokens) = parse(source) {
        each_group(&tokens, &mut |tokens| all.extend(functions_here(tokens)));
    }
    all
}

fn parse(source: &Source) -> Option<Vec<TokenTree>> {
    source.text.parse::<TokenStream>().ok().map(|stream| stream.into_iter().collect())
}

/// Call `visit` with `tokens`, and with what is inside each of their brackets, at any depth.
fn each_group(tokens: &[TokenTree], visit: &mut impl FnMut(&[TokenTree])) {
    visit(tokens);
    for token in tokens {
        if let TokenTree::Group(group) = token {
            let inside: Vec<_> = group.stream().into_iter().collect();
            each_group(&inside, visit);
        }
    }
}

/// The functions whose `fn` stands directly in `tokens`: `fn`, a name, and then the body or, without one, a `;`.
fn functions_here(tokens: &[TokenTree]) -> Vec<Function> {
    let mut found = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        let [TokenTree::Ident(keyword), TokenTree::Ident(name)] = pair else { continue };
        if keyword != "fn" {
            continue;
        }
        if let Some(body) = body(&tokens[index + 2..]) {
            let line = keyword.span().start().line;
            let end = body.span_close().end().line;
            let lines = end + 1 - line - text_lines(body);
            found.push(Function { name: name.to_string(), line, lines });
        }
    }
    found
}

/// How many line ends there are inside of literals: a text, such as a snapshot, is read as one thing, so it counts as
/// one line however long it is.
fn text_lines(group: &Group) -> usize {
    let lines = |token| match token {
        TokenTree::Literal(literal) => literal.span().end().line - literal.span().start().line,
        TokenTree::Group(group) => text_lines(&group),
        TokenTree::Ident(_) | TokenTree::Punct(_) => 0,
    };
    group.stream().into_iter().map(lines).sum()
}

fn body(after_name: &[TokenTree]) -> Option<&Group> {
    for token in after_name {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return Some(group),
            TokenTree::Punct(punct) if punct.as_char() == ';' => return None,
            _ => {}
        }
    }
    None
}

/// The lines of attributes directly in `tokens` that ignore a test and do not say why.
fn silent_ignores(tokens: &[TokenTree]) -> Vec<usize> {
    let mut lines = Vec::new();
    for pair in tokens.windows(2) {
        if let [TokenTree::Punct(hash), TokenTree::Group(attribute)] = pair
            && hash.as_char() == '#'
            && attribute.delimiter() == Delimiter::Bracket
            && ignores_silently(attribute)
        {
            lines.push(hash.span().start().line);
        }
    }
    lines
}

fn ignores_silently(attribute: &Group) -> bool {
    let tokens: Vec<_> = attribute.stream().into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(name), rest @ ..] if name == "ignore" => !gives_reason(rest),
        [TokenTree::Ident(name), TokenTree::Group(inside)] if name == "cfg_attr" => {
            let inside: Vec<_> = inside.stream().into_iter().collect();
            inside.iter().enumerate().any(|(index, token)| {
                matches!(token, TokenTree::Ident(name) if name == "ignore")
                    && !gives_reason(&inside[index + 1..])
            })
        }
        _ => false,
    }
}

/// Whether what follows `ignore` is `= "something"`.
fn gives_reason(rest: &[TokenTree]) -> bool {
    match rest {
        [TokenTree::Punct(equals), TokenTree::Literal(reason), ..] => {
            equals.as_char() == '=' && reason.to_string().trim_matches('"').trim() != ""
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check, check_allowing};

    /// A function of `lines` lines, from `fn` to the closing brace.
    fn long(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_may_have_70_lines_and_not_one_more() {
        check(&format!("//! Long.\n\n{}", long(70)), &[]);
        check(&format!("//! Long.\n\n{}", long(71)), &["3: function `long` has 71 lines (at most 70)"]);
    }

    #[test]
    fn a_long_function_is_found_in_impl_trait_module_function_and_macro() {
        for wrapper in
            ["impl X {", "trait X {", "mod x {", "fn short() {", "proptest! {", "macro_rules! x { () => {"]
        {
            let close = if wrapper.contains("=>") { "} }" } else { "}" };
            let text = format!("//! Long.\n{wrapper}\n{}{close}\n", long(71));
            let found = findings_of(&text);
            assert!(
                found.iter().any(|what| what.starts_with("3: function `long` has 71")),
                "{wrapper} {found:?}"
            );
        }
    }

    #[test]
    fn a_text_counts_as_one_line() {
        let text =
            |code| format!("//! Long.\n\nfn long() {{\n    let a = \"{}\";\n{code}}}\n", "text\n".repeat(99));
        check(&text("    step();\n".repeat(67)), &[]);
        check(&text("    step();\n".repeat(68)), &["3: function `long` has 71 lines (at most 70)"]);
    }

    fn findings_of(text: &str) -> Vec<String> {
        let source = Source { path: "crates/x/src/y.rs".to_owned(), text: text.to_owned() };
        super::check(&source, &[])
            .iter()
            .map(|finding| format!("{}: {}", finding.line, finding.what))
            .collect()
    }

    #[test]
    fn signatures_are_counted_and_bodies_that_belong_to_others_are_not() {
        let source = |text: &str| Source { path: String::new(), text: text.to_owned() };
        let text =
            "trait T {\n    fn without_body(&self) -> u8;\n    fn with(\n        &self,\n    ) {\n    }\n}\n";
        let expected = [Function { name: "with".into(), line: 3, lines: 4 }];
        assert_eq!(functions(&source(text)), expected);
        assert_eq!(functions(&source("type F = fn(u8) -> u8;\nstruct S { f: fn() }\n")), []);
    }

    #[test]
    fn an_allowance_covers_its_function_and_no_longer_one() {
        let allowance =
            Allowance { path: "crates/x/src/y.rs", function: "long", lines: 71, reason: "a test" };
        let text = |lines| format!("//! Long.\n\n{}", long(lines));
        check_allowing(&[allowance], &text(71), &[]);
        check_allowing(&[allowance], &text(72), &["3: function `long` has 72 lines (at most 70)"]);
    }

    #[test]
    fn an_ignored_test_has_to_say_why() {
        let silent = "`#[ignore]` without a reason";
        for attribute in ["#[ignore]", "#[ignore = \"\"]", "#[cfg_attr(miri, ignore)]", "#[ignore()]"] {
            check(&format!("//! Ignored.\n{attribute}\nfn one() {{}}\n"), &[&format!("2: {silent}")]);
        }
        for attribute in ["#[ignore = \"slow\"]", "#[cfg_attr(miri, ignore = \"slow\")]", "#[serde(ignore)]"]
        {
            check(&format!("//! Ignored.\n{attribute}\nfn one() {{}}\n"), &[]);
        }
    }

    #[test]
    fn a_file_that_is_no_rust_is_found() {
        check("//! Broken.\nfn one( {\n", &["1: the file cannot be read as Rust"]);
    }
}
