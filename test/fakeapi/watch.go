package fakeapi

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

// stream is one watch.
type stream struct {
	server    *Server
	c         *collection
	namespace string
	selector  fields.Selector
	next      int64 // version of the first change that was not sent
	encoder   *restwatch.Encoder
	broken    <-chan struct{}
	closed    chan struct{}
	out       *io.PipeWriter
}

// body closes the watch when the client closes the response.
type body struct {
	*io.PipeReader
	closed chan struct{}
}

func (b body) Close() error {
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	return b.PipeReader.Close()
}

func (s *Server) watch(r *http.Request, t target, o metav1.ListOptions) (*http.Response, error) {
	selector, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return failure(apierrors.NewBadRequest(err.Error())), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(t.GroupVersionResource)
	w := &stream{server: s, c: c, namespace: t.namespace, selector: selector, broken: s.broken, closed: make(chan struct{})}
	var first []watch.Event
	from, err := strconv.ParseInt(o.ResourceVersion, 10, 64)
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if err != nil || from == 0 || initial {
		first = w.initialEvents(initial)
		from = s.version
	}
	if from < c.compacted {
		return failure(apierrors.NewResourceExpired("too old resource version")), nil
	}
	w.next = from + 1
	info := accepted(r)
	reader, out := io.Pipe()
	w.out = out
	embedded := scheme.Codecs.EncoderForVersion(info.Serializer, t.GroupVersion())
	frames := info.StreamSerializer.Framer.NewFrameWriter(out)
	w.encoder = restwatch.NewEncoder(streaming.NewEncoder(frames, scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, t.GroupVersion())), embedded)
	timeout := 30 * time.Minute
	if o.TimeoutSeconds != nil {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	go w.run(r.Context(), first, timeout)
	kind := info.MediaType
	if kind != runtime.ContentTypeJSON {
		kind += ";stream=watch"
	}
	return newResponse(http.StatusOK, kind, body{reader, w.closed}), nil
}

// initialEvents has the selected objects, and a bookmark where the client asked for it; the caller holds
// mu.
func (w *stream) initialEvents(bookmark bool) []watch.Event {
	var all []watch.Event
	for _, o := range w.c.sorted() {
		if matches(o, w.namespace, w.selector) {
			all = append(all, watch.Event{Type: watch.Added, Object: o.DeepCopyObject()})
		}
	}
	if bookmark {
		empty, err := scheme.Scheme.New(w.c.gvk)
		if err != nil {
			panic(err) // kinds has only registered types
		}
		o := empty.(object)
		o.SetResourceVersion(strconv.FormatInt(w.server.version, 10))
		o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		all = append(all, watch.Event{Type: watch.Bookmark, Object: o})
	}
	return all
}

// run sends events until the client closes the watch, it breaks or times out.
func (w *stream) run(ctx context.Context, first []watch.Event, timeout time.Duration) {
	stop := context.AfterFunc(ctx, func() { _ = w.out.CloseWithError(ctx.Err()) }) // ends a blocked write
	defer stop()
	end := time.NewTimer(timeout)
	defer end.Stop()
	events := first
	for {
		for _, e := range events {
			if w.encoder.Encode(&e) != nil {
				return // closed by the client
			}
		}
		w.server.mu.Lock()
		changed := w.server.changed
		events = w.pending()
		w.server.mu.Unlock()
		if len(events) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-w.broken:
			_ = w.out.CloseWithError(io.ErrUnexpectedEOF)
			return
		case <-w.closed:
			return
		case <-end.C:
			_ = w.out.Close()
			return
		}
	}
}

// pending returns the changes that were not sent yet; the caller holds mu.
func (w *stream) pending() []watch.Event {
	var all []watch.Event
	for _, c := range w.c.history {
		if c.version >= w.next && matches(c.object, w.namespace, w.selector) {
			all = append(all, watch.Event{Type: c.kind, Object: c.object.DeepCopyObject()})
		}
	}
	w.next = w.server.version + 1
	return all
}
