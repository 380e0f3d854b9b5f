package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// gpuImages are those of examples/gpu. Programs is the directory of NVIDIA's programs.
func gpuImages(programs string) []imageSpec {
	plugin := func(out string) *exec.Cmd {
		return exec.Command("cp", filepath.Join(programs, "nvidia-device-plugin"), out)
	}
	return []imageSpec{
		{"docker.io/swiftlet/saxpy:1", "saxpy.tar", "/saxpy", "65532:65532", buildSaxpy, true},
		{"docker.io/swiftlet/nvidia-device-plugin:1", "nvidia-device-plugin.tar", "/nvidia-device-plugin", "0:0", plugin, true},
	}
}

func buildSaxpy(out string) *exec.Cmd {
	return exec.Command("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-s", "-Wl,--build-id=none",
		"-o", out, "examples/gpu/saxpy/saxpy.c", "-ldl")
}

// library matches the path of a library in a line of ldd.
var library = regexp.MustCompile(`(?m)(/\S+) \(0x[0-9a-f]+\)$`)

// driverNeeds are the parts of glibc that the GPU's driver is linked with, beside libc.so.6.
var driverNeeds = []string{"libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"}

// librariesOf returns the loader and the libraries of a dynamic binary, and what else the driver's
// libraries need when the binary opens them.
func librariesOf(binary string) ([]string, error) {
	out, err := exec.Command("ldd", binary).Output()
	if err != nil {
		return nil, fmt.Errorf("list libraries of %s: %w", binary, err)
	}
	var all []string
	for _, found := range library.FindAllStringSubmatch(string(out), -1) {
		all = append(all, found[1])
		if filepath.Base(found[1]) != "libc.so.6" {
			continue
		}
		for _, name := range driverNeeds {
			beside := filepath.Join(filepath.Dir(found[1]), name)
			if _, err := os.Stat(beside); err != nil {
				return nil, fmt.Errorf("find library beside libc.so.6: %w", err)
			}
			all = append(all, beside)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("list libraries of %s: ldd names none", binary)
	}
	return all, nil
}
