package runtime

import (
	"errors"
	"path/filepath"
	"testing"
)

// The restart count follows from the logs where the runtime has no instance. An error of gather
// is recorded as an event.
func TestPrepareContainer(t *testing.T) {
	b := newBench(t, nil)
	p := testPod(t, `{containers: [{name: c, image: i}]}`)
	c := &p.Spec.Containers[0]
	writeFile(t, filepath.Join(b.cfg.PodLogsDir, "ns_p_u/c/4.log"), "")
	for forgotten, want := range map[bool]int{true: 5, false: 1} {
		prepared, err := b.PrepareContainer(t.Context(), p, c, gatherInput(Input{Pod: p, Container: c, RestartCount: 1, NoInstance: forgotten}))
		if err != nil || prepared.RestartCount != want {
			t.Errorf("no instance %t: %+v %v, want restart count %d", forgotten, prepared, err, want)
		}
	}
	_, err := b.PrepareContainer(t.Context(), p, c, func() (Input, error) { return Input{}, errors.New("no such volume") })
	var known *Error
	if !errors.As(err, &known) || known.Reason != ReasonContainerConfig {
		t.Errorf("error %+v", err)
	}
	expect(t, "events", []string{"spec.containers{c} Warning Failed Error: no such volume"}, b.events.all)
}
