package agent

import (
	"context"
	"net/http"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/metrics"
	"swiftlet/internal/server"
	"swiftlet/internal/server/sockets"
)

// edge is what others see of the node.
type edge struct {
	sockets *sockets.Server
	parts   []part
}

func (a *Agent) makeEdge(ctx context.Context) error {
	if err := a.readMetrics(func() []statsapi.VolumeStats { return a.pods.stats.Claims(ctx) }); err != nil {
		return err
	}
	a.cfg.Gates(a.metrics.Gate)
	probes := prometheus.NewRegistry()
	probes.MustRegister(a.pods.probes, startTime())
	deps := server.Deps{
		Log:        a.log,
		Clock:      a.clock,
		Pods:       podLists{a},
		Metrics:    a.metrics.Gatherer(),
		Meters:     a.serverMeters(),
		Checks:     []server.Check{{Name: "syncloop", Check: func(*http.Request) error { return a.pods.loop.Healthy() }}},
		Containers: a.newContainers(),
		Logs:       a.pods.logs,
		Runtime:    a.cri,
		Stats:      a.pods.stats,

		ProbeMetrics: probes,
		SLIs:         metrics.NewSLIs(startTime()),
		SetVerbosity: a.opts.SetVerbosity,
	}
	if a.tracing != nil {
		deps.Trace = a.tracing.HTTP
	}
	if c := a.api.clients; c != nil {
		deps.TokenReviews = c.Kube.AuthenticationV1().TokenReviews()
		deps.AccessReviews = c.Kube.AuthorizationV1().SubjectAccessReviews()
	}
	if a.api.serving != nil {
		deps.Certificate = a.api.serving
	}
	s, err := server.New(server.Config{
		NodeName:        a.name,
		CertDir:         a.cfg.Flags.CertDir,
		Kubelet:         &a.cfg.Kubelet,
		SplitLogStreams: a.cfg.Features.PodLogsQuerySplitStreams,
		WebSockets:      a.cfg.Features.ExtendWebSocketsToKubelet,
		AllocatedPods:   a.cfg.Features.KubeletAllocatedPodsEndpoint,
		Checkpoints:     a.cfg.Features.ContainerCheckpoint,
		CheckpointDir:   filepath.Join(a.cfg.Flags.RootDir, "checkpoints"),
		Statusz:         a.cfg.Features.ComponentStatusz,
		Flagz:           a.cfg.Features.ComponentFlagz,
		Flags:           a.cfg.FlagValues,
	}, deps)
	if err != nil {
		return err
	}
	a.edge.parts = append(a.edge.parts, part{"server", s.Run})
	return a.makeSockets()
}

// podLists tells the server what runs here.
type podLists struct{ *Agent }

// Pods are the wanted pods, with their status as last derived.
func (l podLists) Pods() *v1.PodList {
	list := &v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []v1.Pod{}}
	for _, p := range l.pods.desired.List() {
		list.Items = append(list.Items, *l.withStatus(p))
	}
	return list
}

// withStatus is the pod with its status as last derived; the pod itself is not changed.
func (a *Agent) withStatus(p *v1.Pod) *v1.Pod {
	shown := *p
	if s, ok := a.pods.status.Get(p.UID); ok {
		shown.Status = s
	}
	return &shown
}

// RunningPods are the pods of which the runtime holds something that runs.
func (l podLists) RunningPods(context.Context) (*v1.PodList, error) {
	list := &v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []v1.Pod{}}
	for _, o := range l.pods.observer.List() {
		live := o.Live()
		if len(live) == 0 {
			continue
		}
		p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
		for _, c := range live {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: c.Name, Image: c.Image})
		}
		list.Items = append(list.Items, p)
	}
	return list, nil
}
