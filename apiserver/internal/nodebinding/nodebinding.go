// Package nodebinding binds pods to the only node. A pod that plainly fits has its node when it is created. The
// first that does not fit, or that only a scheduler can judge, brings kube-scheduler, which then binds all.
package nodebinding

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// reservation is how long a new pod counts that informers have not seen yet: its creation may fail.
const reservation = 10 * time.Second

// Binding binds pods to a node, from a request on or later, until a scheduler is needed.
type Binding struct {
	node      string
	clock     clock.PassiveClock
	scheduler atomic.Bool   // is needed
	waiting   chan struct{} // a pod without a node, or the node, has changed
	pods      corelisters.PodLister
	nodes     corelisters.NodeLister
	synced    []cache.InformerSynced

	mu       sync.Mutex
	reserved map[any]reserved // by request or pod
}

// reserved is a pod that was given the node.
type reserved struct {
	pod   *corev1.Pod
	uid   types.UID // "" until it is known
	until time.Time
}

// New returns a binding to the node of that name.
func New(node string, clock clock.PassiveClock) *Binding {
	return &Binding{node: node, clock: clock, waiting: make(chan struct{}, 1), reserved: map[any]reserved{}}
}

// Run binds pods that have no node although they fit: those that are older than the node, and those whose
// scheduling gates are cleared. It returns once a pod needs a scheduler, or when ctx is done.
func (b *Binding) Run(ctx context.Context, client kubernetes.Interface) (needsScheduler bool) {
	log := klog.FromContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), b.synced...) {
		return false
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-b.waiting:
		}
		pods, _ := b.pods.List(labels.Everything()) // it does not fail
		for _, pod := range pods {
			if !waits(&pod.Spec, b.node) || pod.DeletionTimestamp != nil || b.has(pod.UID) {
				continue
			}
			switch b.place(pod, pod.UID, pod.UID) {
			case judged:
				b.scheduler.Store(true)
				return true
			case bound:
				err := client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
					ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
					Target:     corev1.ObjectReference{Kind: "Node", Name: b.node},
				}, metav1.CreateOptions{})
				if err != nil {
					b.release(pod.UID)
				}
				if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // else it has changed
					log.Error(err, "node binding: bind failed, leaving pods to the scheduler", "pod", klog.KObj(pod))
					b.scheduler.Store(true)
					return true
				}
			}
		}
	}
}

// watch takes the state of the node from informers.
func (b *Binding) watch(shared informers.SharedInformerFactory) error {
	core := shared.Core().V1()
	b.pods, b.nodes = core.Pods().Lister(), core.Nodes().Lister()
	pods, err := core.Pods().Informer().AddEventHandler(b.changes(func(object any) bool {
		pod, ok := object.(*corev1.Pod)
		return ok && waits(&pod.Spec, b.node)
	}))
	if err != nil {
		return err
	}
	nodes, err := core.Nodes().Informer().AddEventHandler(b.changes(func(object any) bool {
		node, ok := object.(*corev1.Node)
		return ok && node.Name == b.node
	}))
	b.synced = []cache.InformerSynced{pods.HasSynced, nodes.HasSynced}
	return err
}

// changes wakes Run when an object that matches is new or has changed.
func (b *Binding) changes(matches func(any) bool) cache.ResourceEventHandler {
	wake := func(any) {
		select {
		case b.waiting <- struct{}{}:
		default:
		}
	}
	return cache.FilteringResourceEventHandler{FilterFunc: matches, Handler: cache.ResourceEventHandlerFuncs{
		AddFunc: wake, UpdateFunc: func(_, object any) { wake(object) },
	}}
}

// verdict is what happens to a pod.
type verdict int

const (
	bound  verdict = iota // the pod fits
	early                 // there is no node yet
	judged                // by a scheduler
)

// place decides about a pod, and reserves what it requests if it fits. The key is that of the reservation, the
// UID that of the pod if it has one.
func (b *Binding) place(pod *corev1.Pod, key any, uid types.UID) verdict {
	if b.scheduler.Load() {
		return judged
	}
	node, err := b.nodes.Get(b.node)
	if err != nil { // not found: a lister has no other
		return early
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.reserved, key) // the request is tried again
	if !fits(pod, node, b.others()) {
		return judged
	}
	pod = pod.DeepCopy()
	pod.Spec.NodeName = b.node
	b.reserved[key] = reserved{pod: pod, uid: uid, until: b.clock.Now().Add(reservation)}
	return bound
}

// others returns the pods of the node. It drops the reservations that are over. The caller holds mu.
func (b *Binding) others() []*corev1.Pod {
	all, _ := b.pods.List(labels.Everything()) // it does not fail
	var others []*corev1.Pod
	seen := map[types.UID]bool{}
	for _, pod := range all {
		if pod.Spec.NodeName != b.node {
			continue
		}
		seen[pod.UID] = true
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			others = append(others, pod)
		}
	}
	for key, r := range b.reserved {
		if seen[r.uid] || b.clock.Now().After(r.until) {
			delete(b.reserved, key)
			continue
		}
		others = append(others, r.pod)
	}
	return others
}

// identify sets the UID of the pod of a reservation, which has none before it is stored.
func (b *Binding) identify(key any, uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := b.reserved[key]; ok {
		r.uid = uid
		b.reserved[key] = r
	}
}

// has reports whether there is a reservation: the pod is bound, and informers have not seen it.
func (b *Binding) has(key any) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.reserved[key]
	return ok
}

// release drops a reservation.
func (b *Binding) release(key any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.reserved, key)
}
