//! What somebody has to know who believes the numbers: where they come from, and where the log or the simulation says
//! less than it seems to.

use tidegate_policy::RateKey;
use tidegate_workload::NamedPolicy;

use super::args::ReplayArgs;
use super::kinds::Kinds;
use super::survey::Survey;

/// In sentences, the most important first. `mistaken` says how often callers were not told apart.
pub(crate) fn of(
    args: &ReplayArgs,
    survey: &Survey,
    kinds: &Kinds<'_>,
    mistaken: u64,
    policies: &[NamedPolicy],
) -> Vec<String> {
    let mut notes = vec![
        "A log shows what the old system let in. Requests that nobody sent because earlier ones took so long are not \
         in it; retries of what it refused or served too late are, and come here too, whatever a policy does."
            .to_owned(),
    ];
    if args.workers.is_none() {
        notes.push(
            "Without --workers every request takes as long as was logged, however many are at work at once: the \
             service never queues and never slows down. With no control nobody waits, and an adaptive limit finds \
             nothing to adapt to. With --workers N it has N places, and the others wait in it."
                .to_owned(),
        );
    }
    if let Some((limit, share)) = survey.limit() {
        notes.push(format!(
            "While anybody waited, the old system had {limit} at work for {:.1} % of the time (at most {}). If that \
             was its limit, --workers {limit} or a policy with limit = {limit} plays it as it was; compare the waits.",
            share * 100.0,
            survey.most_at_work()
        ));
    }
    of_times(args, survey, &mut notes);
    of_policies(kinds, mistaken, policies, &mut notes);
    if survey.left > 0 {
        let patience = args
            .timeout
            .map_or_else(|| "everybody waits".to_owned(), |time| format!("everybody waits {time:?}"));
        notes.push(format!(
            "{} clients had left before their answer was complete, and the log has their time until then; here \
             {patience}.",
            survey.left
        ));
    }
    notes
}

fn of_times(args: &ReplayArgs, survey: &Survey, notes: &mut Vec<String>) {
    if survey.drawn > 0 {
        let from = args.service_time.map_or_else(
            || {
                format!(
                    "drawn from the {} times that it does say (seed {})",
                    survey.worked.count(),
                    args.seed
                )
            },
            |time| format!("{time:?}, as --service-time says"),
        );
        notes.push(format!(
            "For {} of {} requests the log does not say how long the service would have worked on them ({} of them \
             were refused); here it is {from}.",
            survey.drawn, survey.requests, survey.refused
        ));
    }
    if survey.unserved > 0 {
        notes.push(format!(
            "{} requests were answered by the proxy itself, without the service; here the service answers them, in \
             the time that was logged.",
            survey.unserved
        ));
    }
    let is_changed = args.speed != 1.0 || args.scale != 1.0;
    if is_changed {
        notes.push(format!(
            "Requests come {} times as fast, and for each of the log come {}. The time that the service works on \
             them is as logged.",
            args.speed, args.scale
        ));
    }
}

fn of_policies(kinds: &Kinds<'_>, mistaken: u64, policies: &[NamedPolicy], notes: &mut Vec<String>) {
    for (named, count) in policies.iter().zip(&kinds.without_route).filter(|(_, count)| **count > 0) {
        notes.push(format!(
            "{count} requests have no route in {}: the gateway would answer 404; here they go straight to the service.",
            named.name
        ));
    }
    let by_header = |named: &NamedPolicy| {
        named.policy.rate_limits.iter().any(|limit| matches!(limit.key, RateKey::Header(_)))
    };
    if policies.iter().any(by_header) {
        notes.push(
            "A log has no header that a rate limit counts by; a caller is the tenant, if --map says where that is, \
             else the client's address."
                .to_owned(),
        );
    }
    if mistaken > 0 {
        notes.push(format!(
            "More callers came than are told apart at once: {mistaken} times a request was counted against the rate \
             limit of somebody else, who may have used it up."
        ));
    }
}
