package main

import (
	"context"
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/boundedio"
)

// completionLimit is how long a person waits for suggestions.
const completionLimit = 3 * time.Second

// completePods suggests pods to `swiftlet why`: by name in the namespace, or as NAMESPACE/POD.
func (f whyFlags) completePods(command *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a, err := f.reach.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(command.Context(), completionLimit)
	defer cancel()
	pods, err := a.pods(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace := f.namespace
	if namespace == "" {
		namespace = a.namespace
	}
	return append(podNames(pods, namespace, toComplete), "node"), cobra.ShellCompDirectiveNoFileComp
}

// podNames leaves the choice by prefix to the shell.
func podNames(pods []v1.Pod, namespace, toComplete string) []cobra.Completion {
	var names []cobra.Completion
	for _, p := range pods {
		switch {
		case strings.Contains(toComplete, "/") || p.Namespace != namespace:
			names = append(names, cobra.CompletionWithDesc(p.Namespace+"/"+p.Name, string(p.Status.Phase)))
		default:
			names = append(names, cobra.CompletionWithDesc(p.Name, string(p.Status.Phase)))
		}
	}
	return names
}

// pods lists the pods of the kubelet, or of the cluster.
func (a *agentAPI) pods(ctx context.Context) ([]v1.Pod, error) {
	path := "/pods"
	if a.proxied {
		path = "/api/v1/pods"
	}
	text, err := a.get(ctx, "pods", path, "", "application/json")
	if err != nil {
		return nil, err
	}
	var list v1.PodList
	return list.Items, json.Unmarshal(text, &list)
}

// completeKubectl asks kubectl, which is a cobra program, too.
func completeKubectl(command *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	program, err := findKubectl(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(command.Context(), completionLimit)
	defer cancel()
	asked := exec.CommandContext(ctx, program, append(append([]string{"__complete"}, args...), toComplete)...)
	out, err := boundedio.Output(asked, boundedio.Document)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return parseCompletions(string(out))
}

// parseCompletions reads one suggestion a line, and the directive in the last one.
func parseCompletions(out string) ([]cobra.Completion, cobra.ShellCompDirective) {
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	last := len(lines) - 1
	directive, err := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}
