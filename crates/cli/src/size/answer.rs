//! An answer with everything that led to it: for a reader, and for a program.

use std::fmt;

use serde_json::{Map, Value, json};

/// One step of the calculation.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// What is calculated, in a few words.
    what: String,
    /// How, in letters.
    formula: String,
    /// The same with the numbers put in.
    numbers: String,
    /// What comes out, with its unit.
    result: String,
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The answer itself, in a line.
    pub(crate) headline: String,
    /// What was asked.
    pub(crate) inputs: Map<String, Value>,
    /// The numbers, by name.
    pub(crate) results: Map<String, Value>,
    steps: Vec<Step>,
    /// More lines of figures.
    pub(crate) details: Vec<String>,
    /// What has to be known besides, in sentences.
    pub(crate) remarks: Vec<String>,
    /// The lines for a policy file; empty if there are none.
    pub(crate) policy: String,
}

impl Answer {
    /// Adds a step.
    pub(crate) fn step(&mut self, what: &str, formula: &str, numbers: String, result: String) {
        self.steps.push(Step { what: what.to_owned(), formula: formula.to_owned(), numbers, result });
    }

    pub(crate) fn input(&mut self, name: &str, value: impl Into<Value>) {
        self.inputs.insert(name.to_owned(), value.into());
    }

    pub(crate) fn result(&mut self, name: &str, value: impl Into<Value>) {
        self.results.insert(name.to_owned(), value.into());
    }

    pub(crate) fn to_json(&self) -> Value {
        let steps: Vec<Value> = self
            .steps
            .iter()
            .map(|step| {
                let Step { what, formula, numbers, result } = step;
                json!({ "what": what, "formula": formula, "numbers": numbers, "result": result })
            })
            .collect();
        let mut value = self.results.clone();
        value.insert("inputs".into(), Value::Object(self.inputs.clone()));
        value.insert("steps".into(), Value::Array(steps));
        value.insert("remarks".into(), json!(self.remarks));
        value.insert("policy".into(), json!(self.policy));
        Value::Object(value)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.headline)?;
        let width = self.steps.iter().map(|step| step.what.chars().count()).max().unwrap_or(0);
        for Step { what, formula, numbers, result } in &self.steps {
            writeln!(f, "  {what:width$}   {formula} = {numbers} = {result}")?;
        }
        if !self.details.is_empty() {
            writeln!(f)?;
        }
        for line in &self.details {
            writeln!(f, "  {line}")?;
        }
        for remark in &self.remarks {
            writeln!(f, "\n{}", wrapped(remark))?;
        }
        if !self.policy.is_empty() {
            writeln!(f, "\nIn the policy file:\n")?;
            for line in self.policy.lines() {
                writeln!(f, "{}", format!("  {line}").trim_end())?;
            }
        }
        Ok(())
    }
}

/// A paragraph of lines that fit a terminal.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 90;
    let mut out = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let characters = word.chars().count();
        if length > 0 {
            let fits = length + 1 + characters <= WIDTH;
            out.push(if fits { ' ' } else { '\n' });
            length = if fits { length + 1 } else { 0 };
        }
        out.push_str(word);
        length += characters;
    }
    out
}
