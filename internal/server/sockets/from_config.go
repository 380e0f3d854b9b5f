package sockets

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/config"
	"swiftlet/internal/desired"
	"swiftlet/internal/pod"
)

// ConfigFrom reads which of the APIs for programs on the node are served.
func ConfigFrom(cfg *config.Config) Config {
	f := cfg.Features
	return Config{
		RootDir:    cfg.Flags.RootDir,
		ActivePods: f.KubeletPodResourcesListUseActivePods,
		PodLevel:   f.PodLevelResourceManagers,
		PodsAPI:    f.PodsAPI,
	}
}

// LocalPods are the pods of this node.
type LocalPods struct {
	*desired.Pods
	Workers interface{ Active() []*v1.Pod }
}

// Active lists the pods that have not ended.
func (l LocalPods) Active() []*v1.Pod { return l.Workers.Active() }

// ByName finds a pod by its namespace and name.
func (l LocalPods) ByName(namespace, name string) (*v1.Pod, bool) {
	return l.GetByFullName(pod.Ref{Namespace: namespace, Name: name}.FullName())
}
