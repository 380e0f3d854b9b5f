package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// changeConfigMap changes the ConfigMap of all pods and waits until every pod has the new content.
func (s *session) changeConfigMap(ctx context.Context) error {
	const content = "1"
	left := map[string]string{} // pods that have the old content, with the file that will change
	for name, pod := range s.pods.all() {
		left[name] = s.configMapFile(pod)
	}
	began := time.Now()
	patch := fmt.Appendf(nil, `{"data":{%q:%q}}`, configMapKey, content)
	if _, err := s.client.CoreV1().ConfigMaps(namespace).Patch(ctx, configMapName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("change ConfigMap: %w", err)
	}
	err := await(ctx, s.options.Limit, "changed ConfigMap", func() bool {
		for name, file := range left {
			if text, err := os.ReadFile(file); err == nil && string(text) == content {
				delete(left, name)
			}
		}
		return len(left) == 0
	})
	if err != nil {
		return fmt.Errorf("%d pods have the old content: %w", len(left), err)
	}
	s.set("configmap_seconds", time.Since(began).Seconds())
	_, err = s.caused(ctx, "configmap", began)
	s.say("every pod has the changed ConfigMap")
	return err
}

// configMapFile is the file that has the content of the ConfigMap.
func (s *session) configMapFile(pod state) string {
	return filepath.Join(s.dir, pod.node, "kubelet", "pods", string(pod.uid), "volumes", "kubernetes.io~configmap", configMapName, configMapKey)
}

// restartAgents restarts all agents at once. Their containers keep running.
func (s *session) restartAgents(ctx context.Context) error {
	lost, began := s.pods.readinessLost(), time.Now()
	if err := s.fleet.restart(); err != nil {
		return err
	}
	if err := s.returned(ctx, "restart", began); err != nil {
		return err
	}
	s.set("restart_lost", float64(s.pods.readinessLost()-lost))
	s.say("all agents have restarted")
	return nil
}

// outage stops the API server for a while. Nodes find its port closed or, with Resets, a load balancer that
// resets their connections.
func (s *session) outage(ctx context.Context) error {
	watches, err := s.openWatches(ctx)
	if err != nil {
		return err
	}
	watches -= s.ownWatches
	lost, refused, stopped := s.pods.readinessLost(), s.relay.refused.Load(), time.Now()
	if !s.options.Resets {
		s.relay.refuse()
	}
	if err := s.api.StopAPIServer(); err != nil {
		return err
	}
	if err := pause(ctx, s.options.Outage); err != nil {
		return err
	}
	if s.options.Resets {
		s.perNode("outage_attempts", float64(s.relay.refused.Load()-refused)/s.options.Outage.Minutes())
	}
	if err := s.api.StartAPIServer(ctx); err != nil {
		return err
	}
	if !s.options.Resets {
		if err := s.relay.listen(); err != nil {
			return err
		}
	}
	back, err := s.firstAnswer(ctx, stopped.Add(s.options.Outage))
	if err != nil {
		return err
	}
	s.stopped = append(s.stopped, period{stopped, back})
	if err := s.awaitWatches(ctx, back, watches); err != nil {
		return err
	}
	if err := s.returned(ctx, "outage", back); err != nil {
		return err
	}
	s.set("outage_lost", float64(s.pods.readinessLost()-lost))
	s.say("all nodes are back after the outage")
	return nil
}

// firstAnswer waits until the API server has answered a node since a time, and returns when.
func (s *session) firstAnswer(ctx context.Context, since time.Time) (at time.Time, err error) {
	var failed error
	err = await(ctx, s.options.Limit, "the first request after the outage", func() bool {
		failed = s.audit.read()
		answered := s.audit.between(since, time.Now())
		if len(answered) > 0 {
			at = answered[0].at
		}
		return failed != nil || len(answered) > 0
	})
	return at, errors.Join(err, failed)
}

// awaitWatches waits until nodes have begun as many watches as they had before, and sets when that was.
func (s *session) awaitWatches(ctx context.Context, from time.Time, want int) error {
	begun := func() requests {
		return s.audit.between(from, time.Now()).where(func(r request) bool { return r.isWatch() && r.code < 300 })
	}
	var failed error
	err := await(ctx, s.options.Limit, "watches after the outage", func() bool {
		failed = s.audit.read()
		return failed != nil || len(begun()) >= want
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("%d of %d watches have begun: %w", len(begun()), want, err)
	}
	s.set("outage_watches", begun().last().Sub(from).Seconds())
	return nil
}

// returned waits until every node has renewed its lease, and measures what that has caused.
func (s *session) returned(ctx context.Context, storm string, from time.Time) error {
	var failed error
	err := await(ctx, s.options.Limit, "leases of all nodes", func() bool {
		failed = s.audit.read()
		return failed != nil || len(renewedSince(s.audit.between(from, time.Now()), from)) == s.spec.Nodes
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("%d nodes have renewed their lease: %w", len(renewedSince(s.audit.between(from, time.Now()), from)), err)
	}
	var last time.Time
	for _, at := range renewedSince(s.audit.between(from, time.Now()), from) {
		if at.After(last) {
			last = at
		}
	}
	s.set(storm+"_seconds", last.Sub(from).Seconds())
	s.stopped = append(s.stopped, period{from, last})
	all, err := s.caused(ctx, storm, from)
	s.perNode(storm+"_lists", float64(len(all.where(request.isList))))
	return err
}

// caused sets the rows of the requests that a storm has caused, all but heartbeats, and returns them.
func (s *session) caused(ctx context.Context, storm string, from time.Time) (requests, error) {
	to, err := s.settle(ctx, from)
	if err != nil {
		return nil, err
	}
	all := s.audit.between(from, to)
	s.set(storm+"_peak", float64(all.peak()))
	all = all.withoutHeartbeats()
	s.perNode(storm+"_requests", float64(len(all)))
	s.result.Requests[storm] = all.byKind(s.spec.Nodes)
	return all, nil
}
