// kubelite is every Kubernetes component in one binary: kubelet, kubeadm, kubectl, the control plane and etcd.
// The node image of the test cluster links it under each component's name; the harness calls it as "kubelite kubectl".
// One binary instead of nine keeps the node image small and the cold build short.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components maps a name to the maker of its command; kubeadm and etcd bring a main of their own.
var components = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	// The kubelet's command sets up the signal context itself; doing that twice panics.
	"kubelet": func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl": kubectl.NewDefaultKubectlCommand,
	"kubeadm": nil,
	"etcd":    nil,
}

// componentName is the name the binary was called by, or else its first argument (which is then taken off).
func componentName() string {
	name := filepath.Base(os.Args[0])
	if _, known := components[name]; !known && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	return name
}

func main() {
	name := componentName()
	command, known := components[name]
	switch {
	case !known:
		fmt.Fprintln(os.Stderr, "usage: kubelite COMPONENT FLAGS..., COMPONENT one of", slices.Sorted(maps.Keys(components)))
		os.Exit(2)
	case name == "etcd":
		etcdmain.Main(os.Args)
	case name == "kubeadm":
		kubeadmerrors.HandleError(kubeadm.Run())
	default:
		os.Exit(cli.Run(command()))
	}
}
