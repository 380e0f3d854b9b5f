package stats

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
)

// images remembers which image each sandbox was made from. The runtime tells that only
// among its own remarks, so it is asked once for each sandbox.
type images struct {
	mu    *sync.Mutex
	known map[string]string // by sandbox id
}

func newImages() images { return images{mu: new(sync.Mutex), known: map[string]string{}} }

// of is the sandbox's image, "" where the runtime does not tell.
func (i *images) of(ctx context.Context, runtime Runtime, sandbox string) (string, error) {
	i.mu.Lock()
	image, known := i.known[sandbox]
	i.mu.Unlock()
	if known {
		return image, nil
	}
	answer, err := runtime.PodSandboxStatus(ctx, sandbox, true)
	if err != nil {
		return "", err
	}
	var info struct{ Image string }
	if json.Unmarshal([]byte(answer.Info["info"]), &info) != nil {
		info.Image = "" // the remarks are of no fixed form
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known[sandbox] = info.Image
	return info.Image, nil
}

// keep forgets the sandboxes that are gone.
func (i *images) keep(sandboxes map[string]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.known, func(id, _ string) bool { return !sandboxes[id] })
}
