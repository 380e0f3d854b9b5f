package runtime

import (
	"errors"
	"sync"

	"swiftlet/internal/contain"
	"swiftlet/internal/pod"
)

// Targets are the containers and sandboxes of one pod that Stop or Remove acts on.
type Targets struct {
	Containers []pod.Container
	Sandboxes  []pod.Sandbox
}

// inParallel calls f for all items at the same time and waits for all calls.
func inParallel[T any](items []T, f func(*T) error) error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i := range items {
		all.Go(func() { errs[i] = contain.Call(func() error { return f(&items[i]) }) })
	}
	all.Wait()
	return errors.Join(errs...)
}
