package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// staticPods measures from a manifest in the directory to the mirror pod that is Ready.
func staticPods(ctx context.Context, t *trial) error {
	for range t.repeat(3, 1) {
		if err := t.staticPod(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) staticPod(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	k := t.kubelet()
	p := newPod("static")
	p.TypeMeta, p.UID = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ""
	p.Spec.Containers = []corev1.Container{pauseContainer("c")}
	text, err := yaml.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	file := k.box.Path("/etc/kubernetes/manifests/" + p.Name + ".yaml")
	elsewhere := k.box.Path("/etc/kubernetes/" + p.Name + ".yaml")
	if err := os.WriteFile(elsewhere, text, 0o644); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	mirror := p.Name + "-" + k.box.Name()
	ready := k.pods.expect(mirror, isReady)
	began := time.Now()
	if err := os.Rename(elsewhere, file); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	ended, err := ready.at(ctx)
	if err != nil {
		return err
	}
	t.record("static", ended.Sub(began).Seconds())
	gone := k.pods.expect(mirror, isGone)
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("remove manifest: %w", err)
	}
	_, err = gone.at(ctx)
	return err
}
