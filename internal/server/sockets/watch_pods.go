package sockets

import (
	"hash/maphash"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"swiftlet/internal/notify"
)

// watchers are notified when a pod changes. A slow watcher misses intermediate states and always
// gets the latest one.
type watchers struct {
	mu  sync.Mutex
	all map[notify.Signal]bool
}

func (w *watchers) add() (changed notify.Signal, remove func()) {
	changed = notify.New()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[notify.Signal]bool{}
	}
	w.all[changed] = true
	return changed, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, changed)
	}
}

func (w *watchers) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for changed := range w.all {
		changed.Notify()
	}
}

// WatchPods sends all pods, then INITIAL_SYNC_COMPLETE, then each pod that has changed since it
// was sent.
func (a *podsAPI) WatchPods(_ *podsv1alpha1.WatchPodsRequest, stream grpc.ServerStreamingServer[podsv1alpha1.WatchPodsEvent]) error {
	if err := a.ready(); err != nil {
		return err
	}
	changed, remove := a.watchers.add()
	defer remove()
	w := &watch{api: a, stream: stream, seed: maphash.MakeSeed(), sent: map[types.UID]sentPod{}}
	if err := w.send(); err != nil {
		return err
	}
	if err := stream.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
		return err
	}
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-a.stopping:
			return status.Error(codes.Unavailable, "the agent is going down")
		case <-changed:
		}
		if err := w.send(); err != nil {
			return err
		}
	}
}

// watch is one client's view of the pods.
type watch struct {
	api    *podsAPI
	stream grpc.ServerStreamingServer[podsv1alpha1.WatchPodsEvent]
	seed   maphash.Seed
	sent   map[types.UID]sentPod
}

// sentPod is the last version of a pod that a client received.
type sentPod struct {
	ref  metav1.ObjectMeta
	hash uint64 // of the encoded pod
}

// send sends the changes since the last call.
func (w *watch) send() error {
	present := map[types.UID]bool{}
	for _, p := range w.api.sorted() {
		present[p.UID] = true
		if err := w.sendPod(p); err != nil {
			return err
		}
	}
	for uid, last := range w.sent {
		if present[uid] {
			continue
		}
		delete(w.sent, uid)
		text, err := (&v1.Pod{ObjectMeta: last.ref}).Marshal()
		if err != nil {
			return status.Errorf(codes.Internal, "error marshalling watch event pod: %v", err)
		}
		if err := w.stream.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_DELETED, Pod: text}); err != nil {
			return err
		}
	}
	return nil
}

func (w *watch) sendPod(p *v1.Pod) error {
	text, err := w.api.encode(p)
	if err != nil {
		return err
	}
	hash := maphash.Bytes(w.seed, text)
	event := podsv1alpha1.EventType_ADDED
	if last, ok := w.sent[p.UID]; ok {
		if last.hash == hash {
			return nil
		}
		event = podsv1alpha1.EventType_MODIFIED
	}
	w.sent[p.UID] = sentPod{metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID}, hash}
	return w.stream.Send(&podsv1alpha1.WatchPodsEvent{Type: event, Pod: text})
}
