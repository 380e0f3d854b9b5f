package desired

import (
	"context"
	"errors"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"swiftlet/internal/pod"
)

// Mirrors writes the API server's images of static pods, so that others can see them.
type Mirrors struct {
	nodeName string
	client   corev1.PodsGetter
	nodeUID  func() (types.UID, bool)
}

// MirrorConfig says whose static pods these are.
type MirrorConfig struct {
	NodeName string
}

// MirrorDeps are what Mirrors needs from outside.
type MirrorDeps struct {
	Client corev1.PodsGetter
	// NodeUID returns the UID of this node's object, false while it is unknown or being
	// deleted: a mirror without a living owner would be collected at once.
	NodeUID func() (types.UID, bool)
}

// NewMirrors starts nothing; each call of Ensure and Delete is one or two requests.
func NewMirrors(cfg MirrorConfig, deps MirrorDeps) (*Mirrors, error) {
	if cfg.NodeName == "" || deps.Client == nil || deps.NodeUID == nil {
		return nil, errors.New("mirrors: node name, client and node uid are needed")
	}
	return &Mirrors{nodeName: cfg.NodeName, client: deps.Client, nodeUID: deps.NodeUID}, nil
}

// Ensure makes the API server show this version of the static pod. mirror is the one that
// is known, nil for none. It reports whether it changed anything.
func (m *Mirrors) Ensure(ctx context.Context, static, mirror *v1.Pod) (changed bool, err error) {
	if mirror != nil {
		if shows(mirror, static) {
			return false, nil
		}
		if changed, err = m.Delete(ctx, pod.RefOf(mirror), mirror.UID); err != nil {
			return changed, err
		}
	}
	owner, known := m.nodeUID()
	if !known {
		return changed, nil
	}
	_, err = m.client.Pods(static.Namespace).Create(ctx, m.image(static, owner), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		// The usual case after a restart: the watch has not shown it to us yet. When it
		// does, the pod is reconciled and an old version replaced.
		return changed, nil
	case err != nil:
		return changed, fmt.Errorf("create mirror of %s: %w", pod.RefOf(static), err)
	}
	return true, nil
}

// Delete removes a mirror at once, unless another pod has taken its name. It reports
// whether there was one.
func (m *Mirrors) Delete(ctx context.Context, ref pod.Ref, uid types.UID) (deleted bool, err error) {
	err = m.client.Pods(ref.Namespace).Delete(ctx, ref.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0),
		Preconditions:      metav1.NewUIDPreconditions(string(uid)),
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("delete mirror %s: %w", ref, err)
	}
	return true, nil
}

// shows reports whether the mirror is of exactly this version of the static pod.
func shows(mirror, static *v1.Pod) bool {
	return mirror.DeletionTimestamp == nil &&
		mirror.Annotations[pod.AnnotationMirror] == static.Annotations[pod.AnnotationHash]
}

// image is the object that the API server is given. The owner is what the node
// authorizer recognises a node's own mirrors by.
func (m *Mirrors) image(static *v1.Pod, owner types.UID) *v1.Pod {
	mirror := *static
	mirror.Annotations = maps.Clone(static.Annotations)
	mirror.Annotations[pod.AnnotationMirror] = static.Annotations[pod.AnnotationHash]
	mirror.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1.SchemeGroupVersion.String(),
		Kind:       "Node",
		Name:       m.nodeName,
		UID:        owner,
		Controller: ptr.To(true),
	}}
	return &mirror
}
