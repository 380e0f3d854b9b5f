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

// podsAPI is Pods v1alpha1: the pods of the node as the agent sees them, without a way to
// the API server and before that one knows.
type podsAPI struct {
	*Server
	ending <-chan struct{} // closed when the socket is about to close
	podsv1alpha1.UnimplementedPodsServer
}

// ready says why there is no answer yet: pods that were not heard of are not pods that are
// not there.
func (a *podsAPI) ready() error {
	if !a.deps.Pods.Ready() {
		return status.Error(codes.FailedPrecondition, "Kubelet is initializing")
	}
	return nil
}

// ListPods shows all pods, ordered by UID.
func (a *podsAPI) ListPods(context.Context, *podsv1alpha1.ListPodsRequest) (*podsv1alpha1.ListPodsResponse, error) {
	if err := a.ready(); err != nil {
		return nil, err
	}
	answer := &podsv1alpha1.ListPodsResponse{}
	for _, p := range a.sorted() {
		text, err := a.encode(p)
		if err != nil {
			return nil, err
		}
		answer.Pods = append(answer.Pods, text)
	}
	return answer, nil
}

// GetPod shows one pod.
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

// encode is the pod with its status as protobuf.
func (a *podsAPI) encode(p *v1.Pod) ([]byte, error) {
	shown := *p
	shown.Status = a.statusOf(p)
	text, err := shown.Marshal()
	if err != nil {
		return nil, status.Error(codes.Internal, fmt.Sprintf("failed to marshal pod: %v", err))
	}
	return text, nil
}

// statusOf is the status as derived here. Where none was yet, it is the API server's, but
// that one's word for a pod being ready may be from before this agent came up.
func (a *podsAPI) statusOf(p *v1.Pod) v1.PodStatus {
	if known, ok := a.deps.Statuses.Get(p.UID); ok {
		return known
	}
	given := *p.Status.DeepCopy()
	given.Phase = cmp.Or(given.Phase, v1.PodPending)
	for i := range given.Conditions {
		if c := &given.Conditions[i]; c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			c.Status, c.Reason, c.Message = v1.ConditionFalse, "ContainersNotReady", "Kubelet is initializing pod containers"
		}
	}
	return given
}
