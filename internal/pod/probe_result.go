package pod

// Result is the result of a probe.
type Result int

const (
	ProbeUnknown Result = iota // not probed yet, or the probe itself failed
	Passed
	Failed
)

func (r Result) String() string { return [...]string{"unknown", "passed", "failed"}[r] }

// Health has the probe results of one container instance. A probe that the spec does not have is
// ProbeUnknown.
type Health struct {
	Startup, Liveness, Readiness Result
}

// HealthOf returns the health of a container by its id.
type HealthOf func(containerID string) Health
