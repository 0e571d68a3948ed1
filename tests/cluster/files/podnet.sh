#!/bin/bash
# podnet: the pods' network of a kind node. Writes the CNI configuration out of the node's own podCIDR, keeps routes to the
# other nodes' podCIDRs, masquerades what leaves the pods' network. Nodes without address or podCIDR (virtual ones) are
# none of its business. Runs in the podnet DaemonSet, which gives HOST_IP and POD_SUBNET.
template='{range .items[*]}{.status.addresses[?(@.type=="InternalIP")].address}|{.spec.podCIDR}{"\n"}{end}'

write_config() {
  local config=/etc/cni/net.d/10-pods.conflist
  [ ! -f "$config" ] || return 0
  iptables -t nat -A POSTROUTING -s "$1" ! -d "$POD_SUBNET" -j MASQUERADE
  cat > "$config.tmp" <<Y
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam",
    "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "$1"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
Y
  mv "$config.tmp" "$config"
}

while :; do
  # No --request-timeout: any such flag makes kubectl forget the service account.
  if timeout 10 kubectl get nodes -l kubernetes.io/os=linux -o "jsonpath=$template" > /tmp/nodes; then
    # Nodes join in the first minute; later every look is only a cost.
    [ $SECONDS -lt 60 ] && pause=3 || pause=20
    while IFS='|' read -r ip cidr; do
      if [ -z "$ip" ] || [ -z "$cidr" ]; then
        pause=1 # a node that is just joining
      elif [ "$ip" = "$HOST_IP" ]; then
        write_config "$cidr"
      else
        ip route replace "$cidr" via "$ip"
      fi
    done < /tmp/nodes
  else
    pause=1
  fi
  sleep "$pause"
done
