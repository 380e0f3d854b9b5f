package stats

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
)

// sandboxImages caches the image of each sandbox. The runtime reports it only in its verbose
// information, so it is read once for each sandbox.
type sandboxImages struct {
	mu   *sync.Mutex
	byID map[string]string
}

func newSandboxImages() sandboxImages {
	return sandboxImages{mu: new(sync.Mutex), byID: map[string]string{}}
}

// get returns the image of a sandbox, "" if the runtime does not report it.
func (i *sandboxImages) get(ctx context.Context, runtime Runtime, sandbox string) (string, error) {
	i.mu.Lock()
	image, cached := i.byID[sandbox]
	i.mu.Unlock()
	if cached {
		return image, nil
	}
	answer, err := runtime.PodSandboxStatus(ctx, sandbox, true)
	if err != nil {
		return "", err
	}
	var info struct{ Image string }
	if json.Unmarshal([]byte(answer.Info["info"]), &info) != nil {
		info.Image = "" // the verbose information has no fixed form
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.byID[sandbox] = info.Image
	return info.Image, nil
}

// retain drops the sandboxes that are gone.
func (i *sandboxImages) retain(sandboxes map[string]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.byID, func(id, _ string) bool { return !sandboxes[id] })
}
