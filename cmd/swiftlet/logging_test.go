package main

import (
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"swiftlet/internal/klogfmt"
	"swiftlet/test/klogparse"
)

// TestLogging: records of this program and of libraries have the same form.
func TestLogging(t *testing.T) {
	split := logsapi.FormatOptions{
		Text: logsapi.TextOptions{OutputRoutingOptions: logsapi.OutputRoutingOptions{SplitStream: true}},
		JSON: logsapi.JSONOptions{OutputRoutingOptions: logsapi.OutputRoutingOptions{SplitStream: true}},
	}
	cases := map[string]struct {
		cfg            logsapi.LoggingConfiguration
		stdout, stderr []string
	}{
		"text":        {logsapi.LoggingConfiguration{Format: "text"}, nil, []string{"I ours", "W warning", "E error", "I klog", "W klog warning\nof two lines", "I standard"}},
		"json":        {logsapi.LoggingConfiguration{Format: "json"}, nil, []string{"I ours", "I warning", "E error", "I klog", "I klog warning\nof two lines", "I standard"}},
		"verbosity":   {logsapi.LoggingConfiguration{Format: "json", Verbosity: 2}, nil, []string{"I ours", "I ours 2", "I warning", "E error", "I klog", "I klog 2", "I klog warning\nof two lines", "I standard"}},
		"this module": {logsapi.LoggingConfiguration{VModule: []logsapi.VModuleItem{{FilePattern: "logging_test", Verbosity: 2}}}, nil, []string{"I ours", "I ours 2", "W warning", "E error", "I klog", "I klog 2", "W klog warning\nof two lines", "I standard"}},
		"split text":  {logsapi.LoggingConfiguration{Format: "text", Options: split}, []string{"I ours", "I klog", "I standard"}, []string{"W warning", "E error", "W klog warning\nof two lines"}},
		"split json":  {logsapi.LoggingConfiguration{Format: "json", Options: split}, []string{"I ours", "I warning", "I klog", "I klog warning\nof two lines", "I standard"}, []string{"E error"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			defer slog.SetDefault(slog.Default())
			defer log.SetOutput(log.Writer())
			var stdout, stderr strings.Builder
			ours, _, err := newLogger(&c.cfg, &stdout, &stderr)
			if err != nil {
				t.Fatal(err)
			}
			ours.Info("ours")
			ours.Log(t.Context(), klogfmt.V2, "ours 2")
			ours.Log(t.Context(), klogfmt.V3, "ours 3")
			ours.Warn("warning")
			ours.Error("error", "err", "x")
			klog.InfoS("klog", "pod", klog.KRef("ns", "p"))
			klog.V(2).InfoS("klog 2")
			klog.V(3).Infof("klog %d", 3)
			klog.Warningf("klog warning\nof %s lines", "two")
			log.Print("standard")
			checkMessages(t, c.cfg.Format, stdout.String(), c.stdout)
			checkMessages(t, c.cfg.Format, stderr.String(), c.stderr)
		})
	}
}

func checkMessages(t *testing.T, format, text string, want []string) {
	t.Helper()
	parse := klogparse.Text
	if format == "json" {
		parse = klogparse.JSON
	}
	records, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, r.Severity+" "+r.Message)
		if !strings.Contains(r.Caller, "logging_test.go:") {
			t.Errorf("%s: caller %s", r.Message, r.Caller)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}

func TestChangeVerbosity(t *testing.T) {
	defer slog.SetDefault(slog.Default())
	defer log.SetOutput(log.Writer())
	var out strings.Builder
	ours, set, err := newLogger(&logsapi.LoggingConfiguration{}, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"4", "0"} {
		if err := set(level); err != nil {
			t.Fatal(err)
		}
		ours.Debug("ours at " + level)
		klog.V(4).InfoS("klog at " + level)
	}
	for _, level := range []string{"much", "-1", "5000000000"} {
		if set(level) == nil {
			t.Errorf("verbosity %s was accepted", level)
		}
	}
	checkMessages(t, "text", out.String(), []string{"I ours at 4", "I klog at 4"})
}

// TestFirstLogLine: it has both versions, and the last has the error that ends the kubelet.
func TestFirstLogLine(t *testing.T) {
	defer slog.SetDefault(slog.Default())
	defer log.SetOutput(log.Writer())
	var out, errOut strings.Builder
	args := "kubelet --container-runtime-endpoint=unix:///none/r.sock --kubeconfig=/none/kubeconfig --fail-cgroupv1=false --logging-format="
	for format, parse := range map[string]func(string) ([]klogparse.Record, error){"text": klogparse.Text, "json": klogparse.JSON} {
		errOut.Reset()
		if code := run(t.Context(), strings.Fields(args+format), &out, &errOut); code != 1 {
			t.Fatalf("exit code %d: %s", code, errOut.String())
		}
		records, err := parse(errOut.String())
		if err != nil {
			t.Fatal(err)
		}
		first, last := records[0], records[len(records)-1]
		if first.Message != "Kubelet version" || first.Values["kubeletVersion"] != "v1.37.1" || first.Values["swiftletVersion"] != ownVersion() {
			t.Errorf("%s: the first record is %+v", format, first)
		}
		if !slices.ContainsFunc(records, func(r klogparse.Record) bool {
			config, _ := r.Values["config"].(string)
			return r.Message == "Effective KubeletConfiguration" && strings.Contains(config, "\nfailCgroupV1: false  # --fail-cgroupv1\n")
		}) {
			t.Errorf("%s: no record has the configuration: %+v", format, records)
		}
		if failure, _ := last.Values["err"].(string); last.Message != "command failed" || last.Severity != "E" || !strings.Contains(failure, "/none/kubeconfig") {
			t.Errorf("%s: the last record is %+v", format, last)
		}
	}
}

// TestBodiesAreNotLogged: at the highest verbosity client-go would log Secrets and tokens.
func TestBodiesAreNotLogged(t *testing.T) {
	defer slog.SetDefault(slog.Default())
	defer log.SetOutput(log.Writer())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		if _, _, err := newLogger(&logsapi.LoggingConfiguration{Format: format, Verbosity: 10}, &out, &out); err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, BearerToken: "canary-header"})
		if err != nil {
			t.Fatal(err)
		}
		_ = client.CoreV1().RESTClient().Post().AbsPath("/").Body([]byte("canary-body")).Do(t.Context()) // only its log matters
		if text := out.String(); strings.Contains(text, "canary") || !strings.Contains(text, "Response Body") {
			t.Errorf("%s: the log should have the response without its body:\n%s", format, text)
		}
	}
}
