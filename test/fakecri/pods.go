package fakecri

import (
	"context"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RunPod creates a pod with one running container per name, as a kubelet would, and returns the
// IDs. It bypasses faults and the list of calls.
func (s *Server) RunPod(namespace, name, uid string, containers ...string) (sandbox string, ids []string) {
	labels := map[string]string{
		"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.uid": uid,
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: namespace, Uid: uid},
		Labels:   labels,
	}
	answer, err := s.RunPodSandbox(context.Background(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		panic(err) // the test created the same pod twice
	}
	for _, c := range containers {
		ids = append(ids, s.RunContainer(answer.PodSandboxId, c, 0))
	}
	return answer.PodSandboxId, ids
}

// RunContainer adds a running container to a sandbox. It bypasses faults and the list of
// calls.
func (s *Server) RunContainer(sandbox, name string, restartCount int) string {
	s.mu.Lock()
	labels := map[string]string{"io.kubernetes.container.name": name}
	for k, v := range s.sandboxes[sandbox].Labels {
		labels[k] = v
	}
	s.mu.Unlock()
	answer, err := s.CreateContainer(context.Background(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox,
		Config: &runtimeapi.ContainerConfig{
			Metadata:    &runtimeapi.ContainerMetadata{Name: name, Attempt: uint32(restartCount)},
			Image:       &runtimeapi.ImageSpec{Image: ImageID("image"), UserSpecifiedImage: "image"},
			Labels:      labels,
			Annotations: map[string]string{"io.kubernetes.container.restartCount": strconv.Itoa(restartCount)},
		},
	})
	if err == nil {
		_, err = s.StartContainer(context.Background(), &runtimeapi.StartContainerRequest{ContainerId: answer.ContainerId})
	}
	if err != nil {
		panic(err) // the test uses a sandbox that is not ready
	}
	return answer.ContainerId
}

// AddOrphanContainer adds a container that was not started to a pod, in a sandbox that may already
// be removed. This happens if the client of a CreateContainer call dies and the runtime completes
// the call after the sandbox was removed.
func (s *Server) AddOrphanContainer(namespace, name, uid, sandbox, containerName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.id("container")
	s.containers[id] = &container{sandbox: sandbox, order: s.nextID, status: &runtimeapi.ContainerStatus{
		Id:        id,
		Metadata:  &runtimeapi.ContainerMetadata{Name: containerName},
		State:     runtimeapi.ContainerState_CONTAINER_CREATED,
		CreatedAt: s.now().UnixNano(),
		Image:     &runtimeapi.ImageSpec{Image: "image"},
		Labels: map[string]string{
			"io.kubernetes.container.name": containerName, "io.kubernetes.pod.name": name,
			"io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.uid": uid,
		},
		Annotations: map[string]string{"io.kubernetes.container.restartCount": "0"},
	}}
	s.emit(created, id, sandbox)
}
