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

	"swiftlet/internal/klogfmt"
	"swiftlet/internal/pod"
)

// requestTimeout limits one write, so that an API server that does not respond blocks a worker only
// this long.
const requestTimeout = 10 * time.Second

// Run publishes statuses until ctx ends.
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
		p.publishContained(ctx, uid)
		p.queue.Done(uid)
	}
}

// publishContained is publish; a panic is retried as a failed write.
func (p *Publisher) publishContained(ctx context.Context, uid types.UID) {
	err := p.panics.Call("status", func() error { p.publish(ctx, uid); return nil }, "podUID", uid)
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.pods[uid]; ok {
		e.writing, e.dirty = false, true
		p.failed(ctx, e, err)
	}
}

// publish writes the status of one pod, or deletes the pod. It releases the lock during requests.
func (p *Publisher) publish(ctx context.Context, uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.wakeWaiters()
	e, ok := p.pods[uid]
	if !ok {
		return
	}
	object := p.apiObject(e.pod)
	if object == nil {
		return // a static pod without a mirror; Reconcile is called when it exists
	}
	if e.adopt(object) {
		return // the mirror became known between Set and this write
	}
	if e.target != object.UID {
		e.target, e.resourceVersion, e.gone = object.UID, "", false
	}
	if e.gone {
		return
	}
	if e.dirty && !p.write(ctx, e, object) {
		return
	}
	if !e.dirty && e.mayDelete() { // if it is dirty again, the final status is written first
		p.remove(ctx, e)
	}
}

// write writes the latest status and reports whether that succeeded.
func (p *Publisher) write(ctx context.Context, e *entry, object *v1.Pod) bool {
	patch, err := patchFor(object.UID, &e.status)
	if err != nil {
		p.log.Error("publish status: failed to encode patch", pod.RefOf(e.pod).Attr(), "err", err)
		e.dirty = false
		return false
	}
	since := e.since
	e.dirty, e.writing = false, true // a status that is set from here on is a further change
	var version string
	err = p.unlocked(ctx, func(ctx context.Context) (err error) {
		version, err = p.client.PatchStatus(ctx, object.Namespace, object.Name, patch)
		return err
	})
	e.writing = false
	if err != nil {
		e.dirty, e.since = true, since
		p.failed(ctx, e, fmt.Errorf("write status: %w", err))
		return false
	}
	e.resourceVersion = version
	if p.log.Enabled(ctx, klogfmt.V3) {
		p.log.Log(ctx, klogfmt.V3, "Patch status for pod", pod.RefOf(e.pod).Attr(), "patch", string(patch))
	}
	p.meters.Written.Took(p.clock.Since(since))
	p.succeeded(e)
	return true
}

// remove deletes a finished pod from the API server.
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

// failed schedules a retry, unless the pod is gone.
func (p *Publisher) failed(ctx context.Context, e *entry, err error) {
	ref := pod.RefOf(e.pod)
	switch {
	case ctx.Err() != nil:
		return
	case isGone(err):
		e.gone, e.dirty = true, false
		p.log.Debug("publish status: pod no longer exists", ref.Attr())
		return
	}
	e.failures++
	e.outage = isOutage(err)
	wait := p.retries.After(e.failures)
	if e.failures == 1 {
		p.log.Warn("publish status failed, retrying", ref.Attr(), "err", err)
	} else {
		p.log.Debug("publish status failed, retrying", ref.Attr(), "failures", e.failures, "wait", wait, "err", err)
	}
	e.stopRetry()
	p.enqueueAfter(e, wait)
}

// succeeded ends the back-off of all pods that failed because of an outage, if this was one of them.
func (p *Publisher) succeeded(e *entry) {
	if e.failures > 0 {
		p.log.Info("publish status succeeded after retries", pod.RefOf(e.pod).Attr(), "failures", e.failures)
	}
	wasOutage := e.outage
	e.failures, e.outage = 0, false
	if !wasOutage {
		return
	}
	p.retryOutages()
}

// Retry ends the back-off of the pods that failed because of an outage. It is called when the API server
// is available again.
func (p *Publisher) Retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retryOutages()
}

// retryOutages retries them with the first delay: the API server may not be ready yet.
func (p *Publisher) retryOutages() {
	for _, e := range p.pods {
		if e.outage {
			e.failures = 1 // the failure is logged already
			p.enqueueIfNeeded(e)
		}
	}
}

// isGone reports whether the pod does not exist, or its name belongs to another pod. Then a patch fails
// with "metadata.uid is immutable", a delete with a failed precondition.
func isGone(err error) bool {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err):
		return true
	case !errors.As(err, &status):
		return false
	case apierrors.IsConflict(err):
		return strings.Contains(status.Status().Message, "UID")
	case apierrors.IsInvalid(err) && status.Status().Details != nil:
		return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
			return c.Field == "metadata.uid"
		})
	}
	return false
}

// isOutage reports whether the API server or the network failed.
func isOutage(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= 500 || code == 429
}
