package sockets

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// podsAPI is Pods v1alpha1. It serves the kubelet's own view of the pods, which does not need the
// API server and may be ahead of it.
type podsAPI struct {
	*Server
	stopping <-chan struct{} // closed when the server stops
	podsv1alpha1.UnimplementedPodsServer
}

// ready returns an error until every pod source has reported, because the list of pods is
// incomplete before that.
func (a *podsAPI) ready() error {
	if !a.deps.Pods.Ready() {
		return status.Error(codes.FailedPrecondition, "Kubelet is initializing")
	}
	return nil
}

// ListPods returns all pods, ordered by UID.
func (a *podsAPI) ListPods(context.Context, *podsv1alpha1.ListPodsRequest) (*podsv1alpha1.ListPodsResponse, error) {
	if err := a.ready(); err != nil {
		return nil, err
	}
	response := &podsv1alpha1.ListPodsResponse{}
	for _, p := range a.sorted() {
		text, err := a.encode(p)
		if err != nil {
			return nil, err
		}
		response.Pods = append(response.Pods, text)
	}
	return response, nil
}

// GetPod returns one pod.
func (a *podsAPI) GetPod(_ context.Context, q *podsv1alpha1.GetPodRequest) (*podsv1alpha1.GetPodResponse, error) {
	if err := a.ready(); err != nil {
		return nil, err
	}
	p, ok := a.deps.Pods.Get(types.UID(q.PodUID))
	if !ok {
		return nil, status.Errorf(codes.NotFound, "pod with UID %s not found", q.PodUID)
	}
	text, err := a.encode(p)
	return &podsv1alpha1.GetPodResponse{Pod: text}, err
}

func (a *podsAPI) sorted() []*v1.Pod {
	pods := a.deps.Pods.List()
	slices.SortFunc(pods, func(x, y *v1.Pod) int { return cmp.Compare(x.UID, y.UID) })
	return pods
}

// encode marshals the pod, with its status, as protobuf.
func (a *podsAPI) encode(p *v1.Pod) ([]byte, error) {
	withStatus := *p
	withStatus.Status = a.statusOf(p)
	text, err := withStatus.Marshal()
	if err != nil {
		return nil, status.Error(codes.Internal, fmt.Sprintf("failed to marshal pod: %v", err))
	}
	return text, nil
}

// statusOf returns the status that the kubelet has derived. If there is none yet, it returns the
// API server's, without a Ready condition that may predate the start of the kubelet.
func (a *podsAPI) statusOf(p *v1.Pod) v1.PodStatus {
	if derived, ok := a.deps.Statuses.Get(p.UID); ok {
		return derived
	}
	reported := *p.Status.DeepCopy()
	reported.Phase = cmp.Or(reported.Phase, v1.PodPending)
	for i := range reported.Conditions {
		if c := &reported.Conditions[i]; c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			c.Status, c.Reason, c.Message = v1.ConditionFalse, "ContainersNotReady", "Kubelet is initializing pod containers"
		}
	}
	return reported
}
