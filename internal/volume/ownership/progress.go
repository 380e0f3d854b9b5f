package ownership

import (
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// A walk is reported for the first time after firstReport, and every reportPeriod from then on.
const (
	firstReport  = 30 * time.Second
	reportPeriod = time.Minute
)

// Progress reports a walk that takes long. The zero value reports nothing.
type Progress struct {
	// Volume names the volume in messages.
	Volume string
	// Report is called with each message. It must not block.
	Report func(message string)
	Clock  clock.WithTicker
}

// start reports until stop is called. files counts the files that were reached.
func (p Progress) start(files *atomic.Int64) (stop func()) {
	if p.Report == nil {
		return func() {}
	}
	done, stopped := make(chan struct{}), make(chan struct{})
	first := p.Clock.NewTimer(firstReport)
	go func() {
		defer close(stopped)
		defer first.Stop()
		select {
		case <-first.C():
			p.report(files, done)
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}

// report reports until done is closed, in the words of the reference kubelet.
func (p Progress) report(files *atomic.Int64, done <-chan struct{}) {
	p.Report(fmt.Sprintf("Setting volume ownership for %s is taking longer than expected, consider using OnRootMismatch - "+
		"https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods", p.Volume))
	ticker := p.Clock.NewTicker(reportPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			p.Report(fmt.Sprintf("Setting volume ownership for %s, processed %d files.", p.Volume, files.Load()))
		case <-done:
			return
		}
	}
}
