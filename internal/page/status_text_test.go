package page

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestStatusText has what kubectl shows for the same pods.
func TestStatusText(t *testing.T) {
	for name, c := range map[string]struct{ pod, want string }{
		"new":                    {`{}`, "Pending"},
		"running":                {`{status: {phase: Running, containerStatuses: [{name: a, ready: true, state: {running: {}}}]}}`, "Running"},
		"creating":               {`{status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ContainerCreating}}}]}}`, "ContainerCreating"},
		"crash loop":             {`{status: {phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, "CrashLoopBackOff"},
		"first of two":           {`{status: {phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: ErrImagePull}}}, {name: b, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, "ErrImagePull"},
		"evicted":                {`{status: {phase: Failed, reason: Evicted}}`, "Evicted"},
		"succeeded":              {`{status: {phase: Succeeded, containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}]}}`, "Completed"},
		"failed":                 {`{status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 3}}}]}}`, "ExitCode:3"},
		"killed":                 {`{status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 137, signal: 9}}}]}}`, "Signal:9"},
		"one completed":          {`{status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}, {name: b, ready: true, state: {running: {}}}]}}`, "NotReady"},
		"one completed, ready":   {`{status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}, {name: b, ready: true, state: {running: {}}}]}}`, "Running"},
		"first init":             {`{spec: {initContainers: [{name: i}, {name: j}]}, status: {phase: Pending, initContainerStatuses: [{name: i, state: {running: {}}}, {name: j, state: {waiting: {reason: PodInitializing}}}]}}`, "Init:0/2"},
		"second init":            {`{spec: {initContainers: [{name: i}, {name: j}]}, status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {reason: Completed}}}, {name: j, state: {running: {}}}]}}`, "Init:1/2"},
		"init waits for image":   {`{spec: {initContainers: [{name: i}]}, status: {phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: ImagePullBackOff}}}]}}`, "Init:ImagePullBackOff"},
		"init failed":            {`{spec: {initContainers: [{name: i}]}, status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 1, reason: Error}}}]}}`, "Init:Error"},
		"init exits with a code": {`{spec: {initContainers: [{name: i}]}, status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 2}}}]}}`, "Init:ExitCode:2"},
		"sidecar has started":    {`{spec: {initContainers: [{name: i, restartPolicy: Always}]}, status: {phase: Running, initContainerStatuses: [{name: i, started: true, ready: true, state: {running: {}}}], containerStatuses: [{name: a, ready: true, state: {running: {}}}]}}`, "Running"},
		"terminating":            {`{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Running, containerStatuses: [{name: a, ready: true, state: {running: {}}}]}}`, "Terminating"},
		"terminating, completed": {`{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Succeeded, containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}]}}`, "Completed"},
	} {
		t.Run(name, func(t *testing.T) {
			var p v1.Pod
			if err := yaml.UnmarshalStrict([]byte(c.pod), &p); err != nil {
				t.Fatal(err)
			}
			if got := statusText(&p); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
