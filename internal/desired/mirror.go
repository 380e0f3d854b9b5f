package desired

import (
	"context"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Mirrors creates and deletes the mirrors of static pods in the API server.
type Mirrors struct {
	nodeName string
	client   PodClient
	nodeUID  func() (types.UID, bool)
}

// PodClient accesses the API server's pods.
type PodClient interface {
	Pods(namespace string) kubeclient.Pods
}

// MirrorConfig is the configuration of Mirrors.
type MirrorConfig struct {
	NodeName string
}

// MirrorDeps are the dependencies of Mirrors.
type MirrorDeps struct {
	Client PodClient
	// NodeUID returns the UID of this Node, false while it is unknown or the Node is being deleted: a
	// mirror without an owner would be garbage collected.
	NodeUID func() (types.UID, bool)
}

// NewMirrors validates and starts nothing.
func NewMirrors(cfg MirrorConfig, deps MirrorDeps) (*Mirrors, error) {
	if err := require.Set("new mirrors", map[string]any{
		"NodeName": cfg.NodeName, "Client": deps.Client, "NodeUID": deps.NodeUID,
	}); err != nil {
		return nil, err
	}
	return &Mirrors{nodeName: cfg.NodeName, client: deps.Client, nodeUID: deps.NodeUID}, nil
}

// Ensure makes the mirror match this version of the static pod. mirror is the known mirror, nil if there
// is none. It reports whether it changed anything.
func (m *Mirrors) Ensure(ctx context.Context, static, mirror *v1.Pod) (changed bool, err error) {
	missing := false
	if mirror != nil {
		if mirror.DeletionTimestamp == nil && pod.IsMirrorOf(mirror, static) {
			return false, nil
		}
		err = m.delete(ctx, pod.RefOf(mirror), mirror.UID)
		missing = apierrors.IsNotFound(err)
		if err != nil && !isGone(err) {
			return false, err
		}
		changed = err == nil
	}
	owner, known := m.nodeUID()
	if !known {
		return changed, nil
	}
	_, err = m.client.Pods(static.Namespace).Create(ctx, m.mirrorOf(static, owner), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err) && !missing:
		// Usual after a restart: the watch has not sent the mirror yet. When it does, the pod is
		// reconciled, and an old mirror is replaced. It does not send one that it has sent before: an API
		// server that has just started may say that the old mirror is missing, and it must be tried again.
		return changed, nil
	case err != nil:
		return changed, fmt.Errorf("create mirror of %s: %w", pod.RefOf(static), err)
	}
	return true, nil
}

// Delete deletes a mirror without a grace period, unless its name belongs to another pod. It reports
// whether the mirror existed.
func (m *Mirrors) Delete(ctx context.Context, ref pod.Ref, uid types.UID) (deleted bool, err error) {
	err = m.delete(ctx, ref, uid)
	if isGone(err) {
		return false, nil
	}
	return err == nil, err
}

func (m *Mirrors) delete(ctx context.Context, ref pod.Ref, uid types.UID) error {
	err := m.client.Pods(ref.Namespace).Delete(ctx, ref.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0),
		Preconditions:      metav1.NewUIDPreconditions(string(uid)),
	})
	if err != nil {
		return fmt.Errorf("delete mirror %s: %w", ref, err)
	}
	return nil
}

// isGone reports whether the mirror does not exist, or its name belongs to another pod.
func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// mirrorOf returns the mirror to create. By its owner the node authorizer recognizes the mirrors of a
// node.
func (m *Mirrors) mirrorOf(static *v1.Pod, owner types.UID) *v1.Pod {
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
