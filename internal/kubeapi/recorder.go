package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"
)

// RecorderConfig says in whose name events are written.
type RecorderConfig struct {
	Component string // "kubelet"
	Host      string // the node's name
}

// RecorderDeps is what the recorder works with.
type RecorderDeps struct {
	// Client writes events, at its own rate limit. Nil keeps them in memory only.
	Client corev1.EventsGetter
	Clock  clock.Clock
	Log    *slog.Logger
}

const (
	// queueLength is how many events may wait for a slow or absent API server.
	queueLength = 1000
	// keptEvents is how many can be read back where there is no API server to ask.
	keptEvents = 500
	// writeTries and writePause bound the effort for one event.
	writeTries = 12
	writePause = 10 * time.Second
	// flushTime is what is left for queued events when the agent ends.
	flushTime = 2 * time.Second
)

// Recorder writes events without making anybody wait: Eventf queues, Run writes.
// Repeated events are counted up and floods are cut off, as every Kubernetes component does.
type Recorder struct {
	cfg    RecorderConfig
	deps   RecorderDeps
	queue  chan *v1.Event
	recent *ring
}

// NewRecorder starts nothing. Events recorded before Run are written when it runs.
func NewRecorder(cfg RecorderConfig, deps RecorderDeps) (*Recorder, error) {
	if cfg.Component == "" || deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("make event recorder: Component, Clock and Log are needed")
	}
	r := &Recorder{cfg: cfg, deps: deps}
	if deps.Client == nil {
		r.recent = newRing(keptEvents)
	} else {
		r.queue = make(chan *v1.Event, queueLength)
	}
	return r, nil
}

// Eventf records one event about object. It never blocks: with a full queue the event is
// logged and lost.
func (r *Recorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.AnnotatedEventf(object, nil, eventtype, reason, messageFmt, args...)
}

// AnnotatedEventf is Eventf with annotations, for programs that read the event.
func (r *Recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	ref, err := reference.GetReference(scheme.Scheme, object)
	if err != nil {
		r.deps.Log.Error("event about an unknown object", "reason", reason, "err", err)
		return
	}
	event := r.event(ref, eventtype, reason, fmt.Sprintf(messageFmt, args...))
	event.Annotations = annotations
	r.deps.Log.Log(context.Background(), level(eventtype), event.Message, "reason", reason,
		"kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name, "fieldPath", ref.FieldPath)
	if r.recent != nil {
		r.recent.add(event)
		return
	}
	select {
	case r.queue <- event:
	default:
		r.deps.Log.Warn("event lost, too many wait for the API server", "reason", reason, "name", ref.Name)
	}
}

// Recent returns the last events, oldest first, where no API server keeps them.
func (r *Recorder) Recent() []v1.Event {
	if r.recent == nil {
		return nil
	}
	return r.recent.list()
}

// Run writes queued events until ctx is done, then for a moment more what is left.
func (r *Recorder) Run(ctx context.Context) error {
	if r.deps.Client == nil {
		<-ctx.Done()
		return nil
	}
	correlator := record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{Clock: r.deps.Clock})
	for {
		select {
		case event := <-r.queue:
			r.write(ctx, correlator, event)
		case <-ctx.Done():
			r.flush(correlator)
			return nil
		}
	}
}

func (r *Recorder) flush(correlator *record.EventCorrelator) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	for {
		select {
		case event := <-r.queue:
			r.write(ctx, correlator, event)
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
		ObjectMeta:          metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", ref.Name, now.UnixNano()), Namespace: namespace},
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

// write brings one event to the API server: a new one, or the count of a known one.
func (r *Recorder) write(ctx context.Context, correlator *record.EventCorrelator, event *v1.Event) {
	result, err := correlator.EventCorrelate(event)
	if err != nil {
		r.deps.Log.Error("correlate event", "reason", event.Reason, "err", err)
		return
	}
	if result.Skip {
		return
	}
	for try := 1; ; try++ {
		written, err := r.send(ctx, result)
		if err == nil {
			correlator.UpdateState(written)
			return
		}
		if final(err) || try == writeTries || ctx.Err() != nil {
			r.deps.Log.Warn("event not written", "reason", event.Reason, "name", event.InvolvedObject.Name, "err", err)
			return
		}
		select {
		case <-r.deps.Clock.After(writePause):
		case <-ctx.Done():
		}
	}
}

func (r *Recorder) send(ctx context.Context, result *record.EventCorrelateResult) (*v1.Event, error) {
	event := result.Event
	api := r.deps.Client.Events(event.Namespace)
	if event.Count > 1 && len(result.Patch) > 0 {
		written, err := api.PatchWithEventNamespaceWithContext(ctx, event, result.Patch)
		if !apierrors.IsNotFound(err) {
			return written, err
		}
		// The API server forgets events after an hour; then the count starts a new one.
	}
	event.ResourceVersion = ""
	return api.CreateWithEventNamespaceWithContext(ctx, event)
}

// final reports whether the API server would refuse the same event again.
func final(err error) bool {
	var status *apierrors.StatusError
	var malformed *rest.RequestConstructionError
	return errors.As(err, &status) || errors.As(err, &malformed)
}

func level(eventtype string) slog.Level {
	if eventtype == v1.EventTypeWarning {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
