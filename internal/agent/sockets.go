package agent

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/desired"
	"swiftlet/internal/pod"
	"swiftlet/internal/server/sockets"
	"swiftlet/internal/worker"
)

// makeSockets opens the API for programs on the node.
func (a *Agent) makeSockets() (err error) {
	f := a.cfg.Features
	a.edge.sockets, err = sockets.New(sockets.Config{
		RootDir:    a.cfg.Flags.RootDir,
		ActivePods: f.KubeletPodResourcesListUseActivePods,
		PodLevel:   f.PodLevelResourceManagers,
		PodsAPI:    f.PodsAPI,
	}, sockets.Deps{
		Pods:     localPods{a.pods.desired, a.pods.workers},
		CPUs:     a.given.cpus,
		Memory:   a.given.memory,
		Statuses: a.pods.status,
		Devices:  a.pods.devices,
		Claims:   a.pods.claims,
		Called:   a.metrics.Sockets(),
		Clock:    a.clock,
		Log:      a.log,
	})
	if err != nil {
		return err
	}
	a.edge.parts = append(a.edge.parts, part{"sockets", a.edge.sockets.Run})
	return nil
}

// localPods shows programs on the node what runs here.
type localPods struct {
	*desired.Pods
	workers *worker.Pool
}

func (l localPods) Active() []*v1.Pod { return l.workers.Active() }

func (l localPods) ByName(namespace, name string) (*v1.Pod, bool) {
	return l.GetByFullName(pod.Ref{Namespace: namespace, Name: name}.FullName())
}

// shownWorkers have those who watch pods over a socket look again when what is wanted
// changes, for not every such change is one of a status.
type shownWorkers struct {
	*worker.Pool
	agent *Agent
}

func (w shownWorkers) Handle(c pod.Change, failure *pod.Failure) {
	w.Pool.Handle(c, failure)
	w.agent.edge.sockets.Poke()
}

// Active leaves out the pods that are shown as ended, though their workers are not done: the
// scheduler counts on their room from then on. After a restart those are all that had ended.
func (w shownWorkers) Active() []*v1.Pod {
	return slices.DeleteFunc(w.Pool.Active(), func(p *v1.Pod) bool {
		shown, known := w.agent.pods.status.Get(p.UID)
		if !known {
			shown = p.Status
		}
		return pod.IsTerminal(shown.Phase)
	})
}
