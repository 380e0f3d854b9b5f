package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

const (
	configPods = 5  // each with a ConfigMap of its own
	changes    = 10 // of each ConfigMap, in a round
)

// configMapChanges changes ConfigMaps and measures until the mounted file has the new content. The
// reference needs a minute or more for each, so its ConfigMaps change once, in the first round.
func configMapChanges(ctx context.Context, t *trial) error {
	k, times := t.kubelet(), t.number(changes)
	if k.kind == bed.Reference {
		if times = 1; t.round > 1 {
			return nil
		}
	}
	pods := newPods("config", t.number(configPods))
	for _, p := range pods {
		if err := t.addConfigMap(ctx, p); err != nil {
			return err
		}
	}
	if _, err := k.start(ctx, pods); err != nil {
		return err
	}
	for i := range times {
		took, err := together(pods, func(p *corev1.Pod) (began, ended time.Time, err error) {
			return k.changeConfigMap(ctx, p.Name, fmt.Sprint("version ", i+1))
		})
		if err != nil {
			return err
		}
		for _, one := range took.each {
			t.record("configmap", one.Seconds())
		}
	}
	_, err := k.delete(ctx, pods)
	return err
}

// addConfigMap creates a ConfigMap of the pod's name and mounts it.
func (t *trial) addConfigMap(ctx context.Context, p *corev1.Pod) error {
	p.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: p.Name}},
	}}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}
	return createConfigMap(ctx, t.kubelet(), p.Name)
}

func createConfigMap(ctx context.Context, k *kubelet, name string) error {
	_, err := k.client.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(name, "version 0"), metav1.CreateOptions{})
	return err
}

func configMap(name, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: map[string]string{"key": content}}
}

// changeConfigMap watches the pod's volume for the new content.
func (k *kubelet) changeConfigMap(ctx context.Context, pod, content string) (began, ended time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	volume := k.box.Inside(fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~configmap/config", k.pods.get(pod).UID))
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return began, ended, fmt.Errorf("watch volume: %w", err)
	}
	defer watcher.Close()
	if err := watcher.Add(volume); err != nil {
		return began, ended, fmt.Errorf("watch volume: %w", err)
	}
	began = time.Now()
	if _, err := k.client.CoreV1().ConfigMaps(namespace).Update(ctx, configMap(pod, content), metav1.UpdateOptions{}); err != nil {
		return began, ended, err
	}
	for {
		if text, err := os.ReadFile(filepath.Join(volume, "..data", "key")); err == nil && string(text) == content {
			return began, time.Now(), nil
		}
		select {
		case <-watcher.Events:
		case err := <-watcher.Errors:
			return began, ended, fmt.Errorf("watch volume: %w", err)
		case <-ctx.Done():
			return began, ended, fmt.Errorf("wait for %s: %w", volume, context.Cause(ctx))
		}
	}
}
