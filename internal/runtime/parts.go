package runtime

import (
	"errors"
	"sync"

	"swiftlet/internal/pod"
)

// Parts are containers and sandboxes of one pod.
type Parts struct {
	Containers []pod.Container
	Sandboxes  []pod.Sandbox
}

// sideBySide calls f for all items at the same time and waits for all of them.
func sideBySide[T any](items []T, f func(*T) error) error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i := range items {
		all.Go(func() { errs[i] = f(&items[i]) })
	}
	all.Wait()
	return errors.Join(errs...)
}
