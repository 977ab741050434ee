//! What the gateway and the layers in front of services share, in the words of `http`.

pub mod deadline;

pub mod answer;

pub mod quota;
