//! What a phase has seen, summed up: nothing is kept of a single request.

/// Sums since the phase settled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) seconds: f64,
    /// In flight, integrated over time.
    in_flight_seconds: f64,
    /// How long the limit was what held requests back.
    bound_seconds: f64,
    /// Answers, late ones included.
    pub(super) responses: f64,
    /// Those of them whose client had given up.
    pub(super) late: f64,
    /// Requests whose client did not wait for the answer.
    pub(super) gave_up: f64,
}

impl Sums {
    /// So it stood for so long.
    pub(super) fn stood(&mut self, seconds: f64, in_flight: u32, bound: bool) {
        self.seconds += seconds;
        self.in_flight_seconds += seconds * f64::from(in_flight);
        if bound {
            self.bound_seconds += seconds;
        }
    }

    /// What another phase has seen comes to it.
    pub(super) fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.in_flight_seconds += other.in_flight_seconds;
        self.bound_seconds += other.bound_seconds;
        self.responses += other.responses;
        self.late += other.late;
        self.gave_up += other.gave_up;
    }

    pub(super) fn outcomes(&self) -> f64 {
        self.responses + self.gave_up
    }

    pub(super) fn bound_share(&self) -> f64 {
        self.bound_seconds / self.seconds.max(1e-9)
    }

    /// Answers a second.
    pub(super) fn throughput(&self) -> f64 {
        self.responses / self.seconds.max(1e-9)
    }

    /// The mean response time in seconds, by Little's law: no time needs to be kept for it.
    pub(super) fn response_time(&self) -> f64 {
        self.in_flight_seconds / self.responses.max(1.0)
    }

    /// The mean number in flight.
    pub(super) fn in_flight(&self) -> f64 {
        self.in_flight_seconds / self.seconds.max(1e-9)
    }

    pub(super) fn gave_up_share(&self) -> f64 {
        self.gave_up / self.outcomes().max(1.0)
    }

    /// Of those who gave up and of answers that nobody waited for, by all there was. Some are counted twice.
    pub(super) fn missed_share(&self) -> f64 {
        (self.gave_up + self.late) / self.outcomes().max(1.0)
    }

    #[cfg(test)]
    pub(super) fn of(seconds: f64, in_flight: f64, responses: f64, gave_up: f64) -> Self {
        Self {
            seconds,
            in_flight_seconds: seconds * in_flight,
            bound_seconds: seconds,
            responses,
            late: 0.0,
            gave_up,
        }
    }
}

/// A mean over the last few dozen, beginning with the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Smoothed(Option<f64>);

impl Smoothed {
    const WEIGHT: f64 = 0.03;

    pub(super) fn take(&mut self, sample: f64) {
        self.0 = Some(self.0.map_or(sample, |mean| mean + Self::WEIGHT * (sample - mean)));
    }

    /// Zero as long as there was nothing.
    pub(super) fn value(self) -> f64 {
        self.0.unwrap_or(0.0)
    }
}
