//! A moment as it is typed: `2026-11-30T10:00`, with or without seconds, with or without a zone.

use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tidegate_engine::Timestamp;
use tidegate_workload::access_log::Zone;

/// A moment, whose zone may be that of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It named a zone.
    Known(jiff::Timestamp),
    /// It is in the zone of the log.
    Local(DateTime),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(known) = text.parse() {
            return Ok(Self::Known(known));
        }
        text.parse().map(Self::Local).map_err(|_| {
            format!("write a moment as 2026-11-30T10:00 or 2026-11-30T10:00:00+01:00, not {text:?}")
        })
    }
}

impl Moment {
    /// The moment as logs count time; the error is in words.
    pub(crate) fn at(self, zone: &Zone) -> Result<Timestamp, String> {
        let known = match self {
            Self::Known(known) => known,
            Self::Local(local) => {
                // The zone's own words for itself: a name of the tz database, or `UTC+02`.
                let name = zone.to_string();
                let offset = name.strip_prefix("UTC").filter(|offset| !offset.is_empty());
                let zoned = match offset {
                    Some(offset) => format!("{local}{offset}").parse::<jiff::Timestamp>(),
                    None => TimeZone::get(&name).and_then(|zone| zone.to_timestamp(local)),
                };
                zoned.map_err(|error| format!("{local} in {name}: {error}"))?
            }
        };
        u64::try_from(known.as_nanosecond())
            .map(Timestamp::from_nanos)
            .map_err(|_| format!("{known} is before 1970"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_with_and_without_a_zone() {
        for (text, zone, seconds) in [
            ("2026-11-30T10:00:00Z", "Europe/Paris", 1_796_032_800),
            ("2026-11-30T10:00", "UTC", 1_796_032_800),
            ("2026-11-30 10:00:00", "Europe/Paris", 1_796_029_200),
            ("2026-11-30T10:00", "+02:00", 1_796_025_600),
            ("2026-11-30T10:00", "-0530", 1_796_052_600),
            ("2026-11-30", "UTC", 1_795_996_800),
        ] {
            let moment: Moment = text.parse().unwrap();
            let at = moment.at(&zone.parse().unwrap());
            assert_eq!(at, Ok(Timestamp::from_nanos(seconds * 1_000_000_000)), "{text} {zone}");
        }
        assert!("10:00".parse::<Moment>().is_err() && "yesterday".parse::<Moment>().is_err());
        let early: Moment = "1969-12-31T00:00Z".parse().unwrap();
        assert!(early.at(&Zone::UTC).is_err());
    }
}
