package pod

// Result is the outcome of a probe, as far as it is known.
type Result int

const (
	Unsure Result = iota // not probed yet, or the probe itself failed
	Passed
	Failed
)

func (r Result) String() string { return [...]string{"unsure", "passed", "failed"}[r] }

// Health is what the probes of one container instance have said so far. A probe that the
// spec does not ask for stays Unsure; whoever reads Health knows the spec.
type Health struct {
	Startup, Liveness, Readiness Result
}

// HealthOf looks up the health of a container by its id.
type HealthOf func(containerID string) Health
