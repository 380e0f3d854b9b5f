package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// replacements replace the file $f of a pod on the node. A privileged pod, or one that mounts the
// directory, can do so.
var replacements = []struct{ name, script string }{
	{"link-to-file", "ln -s " + hostDir + "/canary $f"},
	{"link-to-device", "ln -s /dev/zero $f"},
	{"fifo", "mkfifo $f"},
	{"device", "mknod $f c 1 5"}, // zero: endless when read
	{"dir", "mkdir $f"},
	{"loop", "ln -s $f $f"},
}

// replacedFiles are pods whose hosts file, termination message or log is replaced before their container is
// restarted. The agent must not read or write through it, nor block.
func replacedFiles() []hostilePod {
	var list []hostilePod
	for _, r := range replacements {
		for name, find := range map[string]string{
			"hosts":   "echo /var/lib/kubelet/pods/$uid/etc-hosts",
			"message": "ls -t /var/lib/kubelet/pods/$uid/containers/c/* | head -n 1",
			"log":     "ls -t /var/log/pods/*_$uid/c/*.log | head -n 1",
		} {
			list = append(list, hostilePod{
				name: name + " replaced by " + r.name, short: name == "message" && r.name == "fifo",
				make: func(node string) *corev1.Pod {
					pod := scripted(name+"-"+r.name, node, "trap 'exit 1' TERM; while :; do sleep 3600 & wait; done")
					pod.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
					return pod
				},
				then: func(ctx context.Context, in string, node *bed.Box, pod *corev1.Pod) error {
					return replaceAndRestart(ctx, in, node, pod, find, r.script)
				},
			})
		}
	}
	return list
}

// replaceAndRestart replaces the file and ends the container. The pod must be reported with a bounded
// message; whether its container starts again depends on the file.
func replaceAndRestart(ctx context.Context, in string, node *bed.Box, pod *corev1.Pod, find, replace string) error {
	script := "uid=$0; f=$(" + find + ") && [ -e $f ] && rm -f $f && " + replace
	if out, err := node.Exec(ctx, "sh", "-ec", script, string(pod.UID)); err != nil {
		return fmt.Errorf("replace file: %w: %s", err, out)
	}
	// Logs of the running container: the answer is an error or a bounded text, within the time.
	logCtx, cancel := context.WithTimeout(ctx, timeout)
	_, _ = client().CoreV1().Pods(in).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: new(int64)}).DoRaw(logCtx)
	late := logCtx.Err()
	cancel()
	if late != nil {
		return fmt.Errorf("read log: %w", late)
	}
	first := pod.Status.ContainerStatuses[0].ContainerID
	_, _ = execInPod(ctx, in, pod.Name, "sh", "-c", "kill -TERM 1") // the command ends with the container
	_, err := awaitErr(ctx, pods(in), pod.Name, timeout, func(pod *corev1.Pod) string {
		if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
			return "the pod has no container statuses"
		}
		c := pod.Status.ContainerStatuses[0]
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if ended := state.Terminated; ended != nil && ended.ContainerID == first {
				if len(ended.Message) > 4096 {
					return fmt.Sprintf("the message has %d bytes", len(ended.Message))
				}
				if ended.Message == "a\n" {
					return "the message is the content of a file of the node"
				}
				return ""
			}
		}
		return fmt.Sprintf("the end of the container is not reported: %+v", c)
	})
	if err != nil {
		return err
	}
	return deleteInTime(ctx, in, pod.Name)
}

// deleteInTime deletes a pod, which must be gone soon.
func deleteInTime(ctx context.Context, in, name string) error {
	began := time.Now()
	if err := client().CoreV1().Pods(in).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err := awaitErr(ctx, pods(in), name, timeout, gone); err != nil {
		return fmt.Errorf("delete, %v: %w", time.Since(began).Round(time.Second), err)
	}
	return nil
}
