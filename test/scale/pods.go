package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/scale/hollow"
)

// creators is how many requests create pods at the same time.
const creators = 8

// startPods creates all pods and waits until they are ready.
func (s *session) startPods(ctx context.Context) error {
	use, err := s.measureUse()
	if err != nil {
		return err
	}
	bytes, began := s.relay.bytes(), time.Now()
	created, err := s.createPods(ctx)
	if err != nil {
		return err
	}
	count := s.spec.Nodes * s.spec.PodsPerNode
	if err := s.awaitAll(ctx, "pods", s.pods.ready, count); err != nil {
		return err
	}
	s.set("pods_ready", float64(s.pods.ready()))
	s.set("pods_seconds", time.Since(began).Seconds())
	used, err := use()
	if err != nil {
		return err
	}
	s.set("pod_api_cpu", used.api.Seconds()/float64(count))
	s.set("pod_node_cpu", used.nodes.Seconds()/float64(count))
	took := readyTimes(created, s.pods.all())
	s.set("pod_p50", percentile(took, 50).Seconds())
	s.set("pod_p99", percentile(took, 99).Seconds())
	s.say("pods are ready")
	settled, err := s.settle(ctx, began)
	if err != nil {
		return err
	}
	all := s.audit.between(began, settled).withoutHeartbeats()
	s.set("pod_requests", float64(len(all))/float64(count))
	s.result.Requests["pod"] = all.byKind(count)
	// idle then subtracts the bytes of heartbeats.
	s.set("pod_bytes", float64(s.relay.bytes()-bytes))
	s.set("pod_bytes_seconds", time.Since(began).Seconds())
	return nil
}

// finishPods subtracts what idle nodes send and receive from the bytes of the pods' start.
func (s *session) finishPods() {
	count := float64(s.spec.Nodes * s.spec.PodsPerNode)
	s.set("pod_bytes", (s.result.Values["pod_bytes"]-s.idleBytes*s.result.Values["pod_bytes_seconds"])/count)
	delete(s.result.Values, "pod_bytes_seconds")
}

// createPods creates the pods, one on each node before the second on any, and returns when each was created.
func (s *session) createPods(ctx context.Context) (map[string]time.Time, error) {
	pods := make(chan *corev1.Pod)
	var mu sync.Mutex
	created := map[string]time.Time{}
	var failed error
	var workers sync.WaitGroup
	for range creators {
		workers.Go(func() {
			for pod := range pods {
				at := time.Now()
				_, err := s.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
				mu.Lock()
				created[pod.Name], failed = at, errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	for i := range s.spec.PodsPerNode {
		for n := range s.spec.Nodes {
			pods <- newPod(fmt.Sprintf("pod-%d-%d", n, i), nodeName(n))
		}
	}
	close(pods)
	workers.Wait()
	if failed != nil {
		return nil, fmt.Errorf("create pods: %w", failed)
	}
	return created, nil
}

// newPod returns a pod with what most pods have: a token, and a ConfigMap.
func newPod(name, node string) *corev1.Pod {
	volume := corev1.Volume{Name: configMapName}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMapName}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": "scale"}},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{
				Name: "app", Image: hollow.Image, ImagePullPolicy: corev1.PullIfNotPresent,
				VolumeMounts: []corev1.VolumeMount{{Name: configMapName, MountPath: "/etc/app"}},
			}},
			Volumes: []corev1.Volume{volume},
		},
	}
}

// readyTimes returns how long pods took from their creation until they were ready, sorted.
func readyTimes(created map[string]time.Time, pods map[string]state) []time.Duration {
	var all []time.Duration
	for name, at := range created {
		if pod, ok := pods[name]; ok && !pod.readyAt.IsZero() {
			all = append(all, pod.readyAt.Sub(at))
		}
	}
	slices.Sort(all)
	return all
}
