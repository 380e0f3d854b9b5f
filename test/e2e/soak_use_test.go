package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"swiftlet/test/bed"
)

// use is what the agent's process uses.
type use struct {
	goroutines, descriptors int
	rss                     int // in KiB
}

// Slack for connections that are open at the moment and for memory that the Go runtime keeps.
const (
	slackGoroutines  = 12
	slackDescriptors = 6
	slackRSS         = 24 << 10
)

// exceeds describes what is used beyond before, or "".
func (u use) exceeds(before use) string {
	var parts []string
	for _, c := range []struct {
		name             string
		now, then, slack int
	}{
		{"goroutines", u.goroutines, before.goroutines, slackGoroutines},
		{"descriptors", u.descriptors, before.descriptors, slackDescriptors},
		{"KiB of resident memory", u.rss, before.rss, slackRSS},
	} {
		if c.now > c.then+c.slack {
			parts = append(parts, fmt.Sprintf("%d %s, were %d", c.now, c.name, c.then))
		}
	}
	return strings.Join(parts, "; ")
}

// warmUse returns what the agent uses after it has started and removed pods, so that its connections and
// caches exist.
func (s *soak) warmUse(t *testing.T) use {
	t.Helper()
	for n := range 3 {
		if err := s.tryPod(t.Context(), fmt.Sprintf("warm-%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	u, err := readUse(t, s.bed, s.node)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("at the start the agent uses %+v", u)
	return u
}

// checkLeaks waits until the node uses what it used before.
func (s *soak) checkLeaks(t *testing.T, before map[string][]string, beforeUse use) {
	t.Helper()
	list := func() []podResource {
		now := podResources(t, s.node)
		left := slices.DeleteFunc(newResources(before, now), func(r podResource) bool { return isUnmountedNetns(r, now["mounts"]) })
		return slices.DeleteFunc(left, s.isEmptyNetns(t, left))
	}
	left := func() string { return formatResources(list()) }
	if waitFor(45*time.Second, left) != "" {
		restartIfContainersLost(t, s.node, list())
		if what := waitFor(2*time.Minute, left); what != "" {
			s.tally.Leaks(strings.Count(what, "\n") + 1)
			t.Errorf("left on the node:\n%s", what)
		}
	}
	var last use
	what := waitFor(time.Minute, func() string {
		var err error
		if last, err = readUse(t, s.bed, s.node); err != nil {
			return err.Error()
		}
		return last.exceeds(beforeUse)
	})
	if what != "" {
		s.tally.Leaks(1)
		t.Errorf("the agent uses more than at the start: %s", what)
	}
	t.Logf("at the end the agent uses %+v", last)
}

// isUnmountedNetns reports whether a resource is the file of a network namespace that is not mounted there.
// containerd makes and removes the file and the mount one after the other, and the test kills it in between.
// A namespace in use is mounted.
func isUnmountedNetns(r podResource, mounts []string) bool {
	return r.kind == "netns" && !slices.ContainsFunc(mounts, func(m string) bool { return strings.HasSuffix(m, "/"+r.name) })
}

// isEmptyNetns returns a function that reports whether a resource is a network namespace without interfaces, or
// its mount. containerd makes the namespace, then saves its path, then sets up the network, and the test kills it
// before it has saved the path: no one knows the namespace after that. CRI lists the sandbox of any other one.
func (s *soak) isEmptyNetns(t *testing.T, left []podResource) func(podResource) bool {
	t.Helper()
	empty := map[string]bool{}
	for _, r := range left {
		if r.kind != "netns" {
			continue
		}
		if links, err := s.node.Exec(t.Context(), "ip", "-n", r.name, "-o", "link"); err == nil && !strings.Contains(links, "eth0") {
			empty[r.name] = true
		}
	}
	return func(r podResource) bool {
		return (r.kind == "netns" || r.kind == "mounts") && empty[path.Base(r.name)]
	}
}

// readUse collects garbage in the agent and reads what is left.
func readUse(t *testing.T, b *bed.Bed, node *bed.Box) (use, error) {
	t.Helper()
	config := rest.CopyConfig(b.ControlPlane.Config)
	config.Host = "https://" + node.Address() + ":10250"
	config.TLSClientConfig.Insecure, config.TLSClientConfig.CAFile, config.TLSClientConfig.CAData = true, "", nil
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return use{}, err
	}
	defer client.CloseIdleConnections()
	if _, err := getNode(client, config.Host+"/debug/pprof/heap?gc=1"); err != nil {
		return use{}, err
	}
	metrics, err := getNode(client, config.Host+"/metrics")
	if err != nil {
		return use{}, err
	}
	var u use
	for line := range strings.Lines(metrics) {
		if value, found := strings.CutPrefix(line, "go_goroutines "); found {
			if u.goroutines, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return use{}, err
			}
		}
	}
	script := `p=$(pidof kubelet) && ls /proc/$p/fd | wc -l && awk '/^VmRSS/ {print $2}' /proc/$p/status`
	out, err := node.Exec(t.Context(), "sh", "-c", script)
	if err != nil {
		return use{}, err
	}
	_, err = fmt.Sscan(out, &u.descriptors, &u.rss)
	return u, err
}

func getNode(client *http.Client, url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return string(body), err
}
