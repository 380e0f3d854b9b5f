package content

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume/atomicdir"
	"swiftlet/internal/why"
)

// maxPodFiles limits the files that the agent writes for one pod. An object has a megabyte at most, but a pod
// can show it at any number of paths, and their memory and disk space are not counted as the pod's.
const maxPodFiles = 128 << 20

// tooLargeError is the error of a pod whose files are too large.
type tooLargeError struct{}

func (tooLargeError) Error() string {
	return fmt.Sprintf("the files of a pod's objects may have at most %d MiB", maxPodFiles>>20)
}

// CheckSize returns an error if the files alone are more than a pod may have.
func CheckSize(size int64) error {
	if size > maxPodFiles {
		return why.Because(why.VolumeTooLarge, "", tooLargeError{})
	}
	return nil
}

// Budget has the size of the files of each pod, by volume. A nil Budget has no limit.
type Budget struct {
	mu   sync.Mutex
	pods map[types.UID]map[string]int64
}

// NewBudget returns a budget of no pods.
func NewBudget() *Budget { return &Budget{pods: map[types.UID]map[string]int64{}} }

// take accounts for the files of a volume, in place of those that it had. It fails if the pod has too much then.
func (b *Budget) take(uid types.UID, volume string, files atomicdir.Payload) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := files.Size()
	for other, size := range b.pods[uid] {
		if other != volume {
			sum += size
		}
	}
	if err := CheckSize(sum); err != nil {
		return err
	}
	if b.pods[uid] == nil {
		b.pods[uid] = map[string]int64{}
	}
	b.pods[uid][volume] = files.Size()
	return nil
}

// Forget drops a pod whose volumes are unmounted.
func (b *Budget) Forget(uid types.UID) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pods, uid)
}
