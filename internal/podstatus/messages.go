package podstatus

import v1 "k8s.io/api/core/v1"

// maxMessages limits the sum of the termination messages of one pod, as the API object must stay
// small.
const maxMessages = 12 * 1024

// maxPodMessage limits the message of a failed pod. It is the API's limit for the message of a condition.
const maxPodMessage = 32 * 1024

// capMessages divides the limit equally among the containers.
func capMessages(s *v1.PodStatus) {
	lists := [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses}
	count := 0
	for _, list := range lists {
		count += len(list)
	}
	if count == 0 {
		return
	}
	limit := maxMessages / count
	for _, list := range lists {
		for i := range list {
			for _, t := range []*v1.ContainerStateTerminated{list[i].State.Terminated, list[i].LastTerminationState.Terminated} {
				if t != nil && len(t.Message) > limit {
					t.Message = t.Message[:limit]
				}
			}
		}
	}
}
