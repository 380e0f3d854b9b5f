package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// requestTimeout bounds one write, so that a server that never answers costs a worker only
// this long.
const requestTimeout = 10 * time.Second

// Run publishes until ctx is done.
func (p *Publisher) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, p.queue.ShutDown)()
	var workers sync.WaitGroup
	if p.client != nil {
		for range p.cfg.Workers {
			workers.Go(func() { p.work(ctx) })
		}
	}
	<-ctx.Done()
	workers.Wait()
	return nil
}

func (p *Publisher) work(ctx context.Context) {
	for {
		uid, ended := p.queue.Get()
		if ended || ctx.Err() != nil {
			return
		}
		p.publish(ctx, uid)
		p.queue.Done(uid)
	}
}

// publish brings the API server up to date with one pod. It gives up the lock during
// requests.
func (p *Publisher) publish(ctx context.Context, uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.wakeWaiters()
	e, ok := p.pods[uid]
	if !ok {
		return
	}
	image := p.imageOf(e.pod)
	if image == nil {
		return // a static pod without a mirror: Reconcile comes with the mirror
	}
	if e.target != image.UID {
		e.target, e.resourceVersion, e.gone = image.UID, "", false
	}
	if e.gone {
		return
	}
	if e.dirty && !p.write(ctx, e, image) {
		return
	}
	if !e.dirty && e.mayLeave() { // dirty again: the final status comes first
		p.remove(ctx, e)
	}
}

// write sends the latest status. It reports whether the API server has it now.
func (p *Publisher) write(ctx context.Context, e *entry, image *v1.Pod) bool {
	patch, err := patchFor(image.UID, &e.status)
	if err != nil {
		p.log.Error("pod status cannot be written", "pod", pod.RefOf(e.pod), "err", err)
		e.dirty = false
		return false
	}
	since := e.since
	e.dirty, e.writing = false, true // what is set from here on is a further change
	var version string
	err = p.unlocked(ctx, func(ctx context.Context) (err error) {
		version, err = p.client.PatchStatus(ctx, image.Namespace, image.Name, patch)
		return err
	})
	e.writing = false
	if err != nil {
		e.dirty, e.since = true, since
		p.failed(ctx, e, fmt.Errorf("write status: %w", err))
		return false
	}
	e.resourceVersion = version
	p.meters.Written.Took(p.clock.Since(since))
	p.succeeded(e)
	return true
}

// remove has the API server drop a pod that is finished here.
func (p *Publisher) remove(ctx context.Context, e *entry) {
	ref := pod.RefOf(e.pod)
	err := p.unlocked(ctx, func(ctx context.Context) error {
		return p.client.DeletePod(ctx, ref.Namespace, ref.Name, ref.UID)
	})
	if err != nil && !isGone(err) {
		p.failed(ctx, e, fmt.Errorf("delete pod: %w", err))
		return
	}
	e.gone = true
	p.succeeded(e)
}

func (p *Publisher) unlocked(ctx context.Context, request func(context.Context) error) error {
	p.mu.Unlock()
	defer p.mu.Lock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return request(ctx)
}

// failed decides whether and when to try again.
func (p *Publisher) failed(ctx context.Context, e *entry, err error) {
	ref := pod.RefOf(e.pod)
	switch {
	case ctx.Err() != nil:
		return
	case isGone(err):
		e.gone, e.dirty = true, false
		p.log.Debug("pod is gone from the API server", "pod", ref)
		return
	}
	e.failures++
	e.outage = isOutage(err)
	wait := p.retries.After(e.failures)
	if e.failures == 1 {
		p.log.Warn("pod status not published, trying again", "pod", ref, "err", err)
	} else {
		p.log.Debug("pod status not published, trying again", "pod", ref, "failures", e.failures, "wait", wait, "err", err)
	}
	e.stopRetry()
	e.retry = p.clock.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pods[ref.UID] == e {
			p.enqueueIfDue(e)
		}
	})
}

// succeeded also ends the wait of those who failed for the server's sake: it is back.
func (p *Publisher) succeeded(e *entry) {
	if e.failures > 0 {
		p.log.Info("pod status published", "pod", pod.RefOf(e.pod), "failures", e.failures)
	}
	wasOutage := e.outage
	e.failures, e.outage = 0, false
	if !wasOutage {
		return
	}
	p.retryOutages()
}

// Retry ends the wait of those who failed for the server's sake: it is back.
func (p *Publisher) Retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retryOutages()
}

// retryOutages has them begin anew: the server may be back, but not ready for a moment yet.
func (p *Publisher) retryOutages() {
	for _, e := range p.pods {
		if e.outage {
			e.failures = 1 // it is known to be in trouble
			p.enqueueIfDue(e)
		}
	}
}

// isGone: there is no pod of this name, or it is another pod by now. A patch says the
// latter with "metadata.uid is immutable", a delete with a failed precondition.
func isGone(err error) bool {
	var answer apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err):
		return true
	case !errors.As(err, &answer):
		return false
	case apierrors.IsConflict(err):
		return strings.Contains(answer.Status().Message, "UID")
	case apierrors.IsInvalid(err) && answer.Status().Details != nil:
		return slices.ContainsFunc(answer.Status().Details.Causes, func(c metav1.StatusCause) bool {
			return c.Field == "metadata.uid"
		})
	}
	return false
}

// isOutage: the failure is the server's or the network's, not the pod's.
func isOutage(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	code := answer.Status().Code
	return code >= 500 || code == 429
}
