-- A job_submit.lua for sites that have none of their own; others: see README.md.
-- Lies beside slurm.conf, with foretime.lua; slurm.conf says JobSubmitPlugins=lua.

package.path = "/etc/slurm/?.lua;" .. package.path
local loaded, foretime = pcall(require, "foretime")

if loaded then
  foretime.configure {
    table = "/var/lib/foretime/table/foretime.table",
    disable_file = "/etc/foretime/foretime.off",
  }
else
  slurm.log_error("foretime: not loaded, jobs are left alone: %s", tostring(foretime))
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  if loaded then foretime.submit(job_desc, part_list, submit_uid) end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  if loaded then foretime.modify(job_desc, job_rec, part_list, modify_uid) end
  return slurm.SUCCESS
end
