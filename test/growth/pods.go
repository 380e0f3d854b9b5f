package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/fakeapi"
	"swiftlet/test/scale/hollow"
)

// managedFields are as long as those of a pod that a Deployment has made.
var managedFields = []metav1.ManagedFieldsEntry{{
	Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
	FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:%0*d":{}}}`, 1500, 0)),
}}

// fill makes a pod like those of an ordinary Deployment: requests, a token, and a ConfigMap that all share.
func fill(p *v1.Pod) error {
	p.ManagedFields = managedFields
	p.Generation = 1
	p.Labels = map[string]string{"app": "growth", "pod-template-hash": "6d5f7c9b8d"}
	projected := &v1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](0o644), Sources: []v1.VolumeProjection{
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](3607)}},
		{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []v1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
	}}
	p.Spec = v1.PodSpec{
		NodeName: nodeName, ServiceAccountName: "default", RestartPolicy: v1.RestartPolicyAlways, DNSPolicy: v1.DNSClusterFirst,
		TerminationGracePeriodSeconds: ptr.To[int64](30), SchedulerName: v1.DefaultSchedulerName, EnableServiceLinks: ptr.To(true),
		PreemptionPolicy: ptr.To(v1.PreemptLowerPriority), Priority: ptr.To[int32](0), SecurityContext: &v1.PodSecurityContext{},
		Tolerations: []v1.Toleration{
			{Key: v1.TaintNodeNotReady, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
			{Key: v1.TaintNodeUnreachable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
		},
		Containers: []v1.Container{{
			Name: "app", Image: hollow.Image, ImagePullPolicy: v1.PullIfNotPresent,
			TerminationMessagePath: v1.TerminationMessagePathDefault, TerminationMessagePolicy: v1.TerminationMessageReadFile,
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1m"), v1.ResourceMemory: resource.MustParse("1Mi")}},
			VolumeMounts: []v1.VolumeMount{
				{Name: "settings", MountPath: "/etc/app"},
				{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
			},
		}},
		Volumes: []v1.Volume{
			{Name: "settings", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}, DefaultMode: ptr.To[int32](0o644)}}},
			{Name: "kube-api-access", VolumeSource: v1.VolumeSource{Projected: projected}},
		},
	}
	p.Status = v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBurstable}
	return nil
}

func (n *node) create(name string) error {
	return fakeapi.Edit(n.api, v1.NamespaceDefault, name, fill)
}

// errRead ends an edit that only reads.
var errRead = errors.New("read")

// ready reports whether a pod is Ready in the API server.
func (n *node) ready(name string) (ready bool) {
	_ = fakeapi.Edit(n.api, v1.NamespaceDefault, name, func(p *v1.Pod) error {
		for _, c := range p.Status.Conditions {
			ready = ready || c.Type == v1.PodReady && c.Status == v1.ConditionTrue
		}
		return errRead
	})
	return ready
}

// awaitReady waits until all of these pods are Ready.
func (n *node) awaitReady(ctx context.Context, names map[string]bool) error {
	for len(names) > 0 {
		select {
		case name := <-n.patched:
			if names[name] && n.ready(name) {
				delete(names, name)
			}
		case <-n.exited:
			return fmt.Errorf("the agent ended: %s", n.lastLog())
		case <-time.After(5 * time.Minute):
			return fmt.Errorf("%d pods are not Ready: %s", len(names), n.lastLog())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// grow starts pods until there are so many, and returns how many it has started.
func (n *node) grow(ctx context.Context, number int) (added int, err error) {
	names := map[string]bool{}
	for ; n.started < number; n.started++ {
		name := fmt.Sprintf("pod-%d", n.started)
		names[name] = true
		if err := n.create(name); err != nil {
			return 0, err
		}
	}
	added = len(names)
	return added, n.awaitReady(ctx, names)
}

// end deletes a pod and waits until the agent has removed it.
func (n *node) end(ctx context.Context, name string) error {
	err := fakeapi.Edit(n.api, v1.NamespaceDefault, name, func(p *v1.Pod) error {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, ptr.To[int64](30)
		return nil
	})
	for err == nil && n.exists(name) {
		err = n.pause(ctx, time.Millisecond)
	}
	return err
}

func (n *node) exists(name string) (exists bool) {
	_ = fakeapi.Edit(n.api, v1.NamespaceDefault, name, func(p *v1.Pod) error {
		exists = p.UID != ""
		return errRead
	})
	return exists
}
