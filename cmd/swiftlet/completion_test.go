package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The scripts are ones that the shells can read.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var script, problems bytes.Buffer
		if code := run(t.Context(), []string{"swiftlet", "completion", shell}, &script, &problems); code != 0 || script.Len() == 0 {
			t.Errorf("%s: code %d, %s", shell, code, problems.String())
			continue
		}
		program, err := exec.LookPath(shell)
		if err != nil {
			continue // the machine lacks it
		}
		check := exec.Command(program, "-n")
		check.Stdin = &script
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

func TestCompletionOfPods(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pods" {
			t.Errorf("request of %s", r.URL.Path)
		}
		pod := func(namespace, name string) v1.Pod {
			return v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: v1.PodStatus{Phase: v1.PodRunning}}
		}
		_ = json.NewEncoder(w).Encode(v1.PodList{Items: []v1.Pod{pod("default", "web"), pod("shop", "cart")}})
	}))
	defer server.Close()
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{""}, "web\tRunning shop/cart\tRunning node :4"},
		{[]string{"we"}, "web\tRunning :4"},
		{[]string{"default/"}, "default/web\tRunning :4"},
		{[]string{"--namespace", "shop", "c"}, "cart\tRunning :4"},
		{[]string{"web", ""}, ":4"},
	} {
		var out, problems bytes.Buffer
		args := append([]string{"swiftlet", cobra.ShellCompRequestCmd, "why", "--server", server.URL}, row.args...)
		run(t.Context(), args, &out, &problems)
		var got []string
		for line := range strings.Lines(out.String()) {
			word := strings.TrimSuffix(line, "\n")
			if last := row.args[len(row.args)-1]; strings.HasPrefix(word, last) || strings.HasPrefix(word, ":") {
				got = append(got, word)
			}
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%q: got %q, want %q", row.args, got, row.want)
		}
	}
}

func TestCompletionOfKubectl(t *testing.T) {
	got, directive := parseCompletions("pods\npods.metrics.k8s.io\n:4\n")
	if !slices.Equal(got, []string{"pods", "pods.metrics.k8s.io"}) || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("got %q, %d", got, directive)
	}
	if _, directive := parseCompletions("panic"); directive != cobra.ShellCompDirectiveError {
		t.Errorf("got %d", directive)
	}
}
