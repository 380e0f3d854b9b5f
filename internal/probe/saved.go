package probe

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/pod"
)

// ResultsFile is the name of the file in the agent's root directory.
const ResultsFile = "probe_results_state"

// savedResults are the results of one container instance in the file.
type savedResults struct {
	Started bool `json:"started,omitempty"`
	Ready   bool `json:"ready,omitempty"`
}

func (r savedResults) passed(k kind) bool {
	return (k == startup && r.Started) || (k == readiness && r.Ready)
}

// savedFor is how long results of an earlier agent are kept for containers that are not probed yet.
const savedFor = 10 * time.Minute

const (
	// saveInterval bounds the writes while many containers start.
	saveInterval = time.Second
	// saveRetry is the time after a failed write until the next, on a full disk for example.
	saveRetry = 30 * time.Second
)

// readSaved reads the file. If that fails, containers without a published status are probed as if they had
// just started.
func readSaved(file string, log *slog.Logger) map[string]savedResults {
	saved := map[string]savedResults{}
	if file == "" {
		return saved
	}
	if err := checkpoint.Read(file, &saved); err != nil && !errors.Is(err, checkpoint.ErrMissing) {
		log.Warn("failed to read probe results", "err", err)
	}
	return saved
}

// markUnsaved lets save write the file. Results of startup probes are written at once: if one were lost in
// a crash while the API server is away, the probe would run again in a container that has long started, and
// its failure would kill the container.
func (p *Prober) markUnsaved(k kind) {
	p.unsaved.Notify()
	if k == startup {
		p.saveNow.Notify()
	}
}

// save writes the file after changes until ctx is done: after startup probes at once, otherwise not more
// often than every saveInterval. Changes are published without waiting for the disk.
func (p *Prober) save(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-p.unsaved:
			wait := saveInterval
			if !p.writeSaved() {
				p.unsaved.Notify()
				wait = saveRetry
			}
			select {
			case <-p.deps.Clock.After(wait):
			case <-p.saveNow:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	}
	select {
	case <-p.unsaved:
		p.writeSaved()
	default:
	}
}

func (p *Prober) writeSaved() (ok bool) {
	if p.file == "" {
		return true
	}
	err := checkpoint.Write(p.file, p.toSave())
	if err != nil {
		p.deps.Log.Warn("failed to write probe results", "err", err)
	}
	return err == nil
}

// toSave returns the results of all containers, and those of an earlier agent of containers that are not
// probed yet.
func (p *Prober) toSave() map[string]savedResults {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deps.Clock.Since(p.created) > savedFor {
		p.saved = nil
	}
	all := maps.Clone(p.saved)
	if all == nil {
		all = map[string]savedResults{}
	}
	for id := range p.probes {
		all[id.container] = savedResults{
			Started: p.passed(key{id.container, startup}),
			Ready:   p.passed(key{id.container, readiness}),
		}
	}
	return all
}

func (p *Prober) passed(id key) bool {
	s := p.probes[id]
	return s != nil && s.result == pod.Passed
}
