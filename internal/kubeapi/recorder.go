package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"swiftlet/internal/clip"
	"swiftlet/internal/klogfmt"
	"swiftlet/internal/kubeclient"
	"swiftlet/internal/require"
)

// RecorderConfig is the source that events name.
type RecorderConfig struct {
	Component string // "kubelet"
	Host      string // the node's name
	// KeepRecent keeps the last events in memory also with an API server.
	KeepRecent bool
}

// EventClient accesses the API server's events.
type EventClient interface {
	Events(namespace string) kubeclient.Events
}

// RecorderDeps is what the recorder works with.
type RecorderDeps struct {
	// Client writes events, at its own rate limit. If nil, events stay in memory only.
	Client EventClient
	Clock  clock.Clock
	Log    *slog.Logger
}

const (
	// queueLength is the number of events that may wait for a slow or unreachable API server.
	queueLength = 1000
	// maxRecentEvents is the number of events that Recent returns.
	maxRecentEvents = 500
	// maxWriteAttempts and writeRetryInterval limit the retries for one event.
	maxWriteAttempts   = 12
	writeRetryInterval = 10 * time.Second
	// flushTimeout is the time to write queued events at shutdown.
	flushTimeout = 2 * time.Second
)

// Recorder writes events asynchronously: Eventf queues, Run writes. It aggregates repeated
// events and limits their rate with client-go's correlator, also in the log.
type Recorder struct {
	cfg    RecorderConfig
	deps   RecorderDeps
	queue  chan *record.EventCorrelateResult
	recent *ring

	// mu orders the correlation of events and their place in the queue: the update of an event follows
	// its creation.
	mu         sync.Mutex
	correlator *record.EventCorrelator
}

// NewRecorder starts nothing. Events recorded before Run are written when it runs.
func NewRecorder(cfg RecorderConfig, deps RecorderDeps) (*Recorder, error) {
	if err := require.Set("new event recorder", map[string]any{
		"Component": cfg.Component, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	r := &Recorder{cfg: cfg, deps: deps, correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
		Clock: deps.Clock,
		MessageFunc: func(event *v1.Event) string {
			return clip.Text(record.EventAggregatorByReasonMessageFunc(event), clip.Event)
		},
	})}
	if deps.Client == nil || cfg.KeepRecent {
		r.recent = newRing(maxRecentEvents)
	}
	if deps.Client != nil {
		r.queue = make(chan *record.EventCorrelateResult, queueLength)
	}
	return r, nil
}

// Eventf records one event about object. It never blocks: if the queue is full, it logs and
// drops the event.
func (r *Recorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.AnnotatedEventf(object, nil, eventtype, reason, messageFmt, args...)
}

// AnnotatedEventf is Eventf with annotations, for programs that read the event.
func (r *Recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	ref, err := reference.GetReference(kubeclient.Scheme, object)
	if err != nil {
		r.deps.Log.Error("record event: cannot reference object", "reason", reason, "err", err)
		return
	}
	event := r.event(ref, eventtype, reason, clip.Text(fmt.Sprintf(messageFmt, args...), clip.Event))
	event.Annotations = annotations
	if r.recent != nil {
		r.recent.add(event.DeepCopy())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	result, err := r.correlator.EventCorrelate(event)
	switch {
	case err != nil:
		r.deps.Log.Error("record event: correlation failed", "reason", reason, "err", err)
		return
	case result.Skip:
		return
	}
	r.log(result.Event)
	if r.queue == nil {
		return
	}
	select {
	case r.queue <- result:
	default:
		r.deps.Log.Warn("record event: queue full, event dropped", "reason", reason, "name", ref.Name)
	}
}

// Recent returns the last events, oldest first, if they are kept.
func (r *Recorder) Recent() []v1.Event {
	if r.recent == nil {
		return nil
	}
	return r.recent.list()
}

// Run writes queued events until ctx is done, and then flushes the queue within flushTimeout.
func (r *Recorder) Run(ctx context.Context) error {
	if r.deps.Client == nil {
		<-ctx.Done()
		return nil
	}
	for {
		select {
		case event := <-r.queue:
			r.write(ctx, event)
		case <-ctx.Done():
			r.flush()
			return nil
		}
	}
}

func (r *Recorder) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	for {
		select {
		case event := <-r.queue:
			r.write(ctx, event)
		default:
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (r *Recorder) event(ref *v1.ObjectReference, eventtype, reason, message string) *v1.Event {
	now := metav1.Time{Time: r.deps.Clock.Now()}
	namespace := ref.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &v1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: util.GenerateEventName(ref.Name, now.UnixNano()), Namespace: namespace},
		InvolvedObject:      *ref,
		Reason:              reason,
		Message:             message,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
		Type:                eventtype,
		Source:              v1.EventSource{Component: r.cfg.Component, Host: r.cfg.Host},
		ReportingController: r.cfg.Component,
		ReportingInstance:   r.cfg.Host,
	}
}

// write creates an event, or patches the count of an earlier equal one.
func (r *Recorder) write(ctx context.Context, result *record.EventCorrelateResult) {
	event := result.Event
	for attempt := 1; ; attempt++ {
		// The correlator need not know what was written: it has counted later events meanwhile, and the
		// recorder chooses the names.
		err := r.send(ctx, result)
		if err == nil {
			return
		}
		if isPermanent(err) || attempt == maxWriteAttempts || ctx.Err() != nil {
			r.deps.Log.Warn("record event: write failed, event dropped", "reason", event.Reason, "name", event.InvolvedObject.Name, "err", err)
			return
		}
		select {
		case <-r.deps.Clock.After(writeRetryInterval):
		case <-ctx.Done():
		}
	}
}

func (r *Recorder) send(ctx context.Context, result *record.EventCorrelateResult) error {
	event := result.Event
	api := r.deps.Client.Events(event.Namespace)
	if event.Count > 1 && len(result.Patch) > 0 {
		_, err := api.Patch(ctx, event.Name, types.StrategicMergePatchType, result.Patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		}
		// The API server deletes events after an hour; then a new one continues the count.
	}
	event.ResourceVersion = ""
	_, err := api.Create(ctx, event, metav1.CreateOptions{})
	return err
}

// isPermanent reports whether the API server would reject the same event again.
func isPermanent(err error) bool {
	var status *apierrors.StatusError
	var malformed *rest.RequestConstructionError
	return errors.As(err, &status) || errors.As(err, &malformed)
}

// log logs an event as client-go's recorder does.
func (r *Recorder) log(event *v1.Event) {
	ref := &event.InvolvedObject
	r.deps.Log.Log(context.Background(), klogfmt.V3, "Event occurred", "object", klog.KRef(ref.Namespace, ref.Name), "fieldPath", ref.FieldPath,
		"kind", ref.Kind, "apiVersion", ref.APIVersion, "type", event.Type, "reason", event.Reason, "message", event.Message)
}
