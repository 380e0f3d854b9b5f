package podstatus

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// A container's status shows its stop signal only while the gate is on.
func TestStopSignalIsGated(t *testing.T) {
	signal := v1.SIGUSR1
	for _, on := range []bool{true, false} {
		o := observe("ready a:run")
		o.Containers[0].StopSignal = &signal
		fields := pod.NewGatedFields(func(gate string) bool { return on || gate != "ContainerStopSignals" })
		got := Compute(Input{Pod: newPod("Always", "a"), Observed: o, Now: now, Fields: fields}).ContainerStatuses[0].StopSignal
		if shown := got != nil; shown != on {
			t.Errorf("gate on %v: stop signal %v", on, got)
		}
	}
}
